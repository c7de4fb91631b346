package view

import (
	"io"
	"slices"

	"tether/agent/redact"
	"tether/shellint"
)

// watchImages bounds the bytes of images that are shown in all: the amount that lend.images lets out in a minute.
const watchImages = 2 << 20

// Safe is a person's screen for output of others, at another machine or in a file. As in the view for hosts, nothing in it makes the
// person's own terminal answer, set the clipboard or print. Undecided text waits for more, up to 4 KiB.
//
//	Write --scanner: no queries, no clipboard--> text --filter: everything else--> out
type Safe struct {
	out io.Writer

	scanner *shellint.Scanner
	result  shellint.Result
	raw     []byte // from rawAt on, not decided by the scanner
	rawAt   int64

	filter *redact.Filter
	masks  []redact.Mask
	text   []byte // from textAt on, not decided by the filter
	textAt int64
}

// NewSafe returns a view that writes to out.
func NewSafe(out io.Writer) *Safe {
	rules, err := redact.Compile(redact.Options{Images: watchImages})
	if err != nil {
		panic(err) // only a pattern of the person's could be wrong
	}
	return &Safe{out: out, scanner: shellint.NewScanner(shellint.Options{Queries: true}), filter: redact.NewFilter(rules, 0)}
}

// Write takes whole characters.
func (v *Safe) Write(p []byte) (int, error) {
	v.raw = append(v.raw, p...)
	v.scanner.Scan(p, &v.result)
	v.scanned()
	return len(p), v.pass()
}

// Close shows the waiting text.
func (v *Safe) Close() error {
	v.scanner.Close(&v.result)
	v.scanned()
	v.filter.Flush()
	return v.pass()
}

// scanned passes on text that the scanner has decided.
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

// leave goes on behind the raw bytes up to an offset.
func (v *Safe) leave(to int64) {
	if n := to - v.rawAt; n > 0 {
		v.raw, v.rawAt = append(v.raw[:0], v.raw[n:]...), to
	}
}

// pass shows text that the filter has decided.
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
