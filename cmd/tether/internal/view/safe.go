package view

import (
	"io"
	"slices"

	"tether/agent/redact"
	"tether/shellint"
)

// watchImages bounds the images that a Safe passes on in total, in bytes: as much as lend.images allows per minute.
const watchImages = 2 << 20

// Safe passes output of others, from another machine or from a file, on to the person's terminal. As in the outward view, it removes
// sequences that would make the terminal answer, set the clipboard or print. It holds back at most 4 KiB of undecided text until more
// comes.
//
//	Write --scanner: no queries, no clipboard--> text --filter: everything else--> out
type Safe struct {
	out io.Writer

	scanner *shellint.Scanner
	result  shellint.Result
	raw     []byte // output that the scanner has not decided
	rawAt   int64  // offset of raw in the output

	filter *redact.Filter
	masks  []redact.Mask
	text   []byte // text that the filter has not decided
	textAt int64  // offset of text in the text
}

// NewSafe returns a view that writes to out.
func NewSafe(out io.Writer) *Safe {
	rules, err := redact.Compile(redact.Options{Images: watchImages})
	if err != nil {
		panic(err) // only a pattern from the configuration could be wrong, and there is none
	}
	return &Safe{out: out, scanner: shellint.NewScanner(shellint.Options{Queries: true}), filter: redact.NewFilter(rules, 0)}
}

// Write implements io.Writer. p must not end within a character. Write fails only if the writer fails.
func (v *Safe) Write(p []byte) (int, error) {
	v.raw = append(v.raw, p...)
	v.scanner.Scan(p, &v.result)
	v.scanned()
	return len(p), v.pass()
}

// Close passes on the text that was held back. The Safe must not be used afterwards. Close does not close the writer.
func (v *Safe) Close() error {
	v.scanner.Close(&v.result)
	v.scanned()
	v.filter.Flush()
	return v.pass()
}

// scanned gives output that the scanner has decided to the filter, without the removed sequences.
func (v *Safe) scanned() {
	from := len(v.text)
	plain := func(to int64) {
		if n := to - v.rawAt; n > 0 {
			v.text = append(v.text, v.raw[:n]...)
			v.leave(to)
		}
	}
	for _, s := range v.result.Spans {
		if s.Class != shellint.ClassQuery && s.Class != shellint.ClassClipboard && s.Class != shellint.ClassMark {
			continue
		}
		plain(s.Start)
		if s.Splice {
			v.text = append(v.text, shellint.Splice...)
		}
		v.leave(s.End)
	}
	plain(v.result.Decided)
	v.filter.Feed(v.text[from:])
}

// leave drops the raw bytes before the offset to.
func (v *Safe) leave(to int64) {
	if n := to - v.rawAt; n > 0 {
		v.raw, v.rawAt = append(v.raw[:0], v.raw[n:]...), to
	}
}

// pass writes text that the filter has decided, with its masks.
func (v *Safe) pass() error {
	secrets, sequences := v.filter.Take()
	v.masks = append(append(v.masks, secrets...), sequences...)
	n := v.filter.Decided() - v.textAt
	shown := v.text[:n]
	for _, m := range v.masks {
		m.Put(shown, v.textAt)
	}
	v.textAt += n
	v.masks = slices.DeleteFunc(v.masks, func(m redact.Mask) bool { return m.End <= v.textAt })
	_, err := v.out.Write(shown)
	v.text = append(v.text[:0], v.text[n:]...)
	return err
}
