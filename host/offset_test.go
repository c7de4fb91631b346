package host_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// A host that is started again gets the text that its owner still has. Offsets mean the
// same there: of text, before and after the ends of commands.
func TestOffsetsOutliveTheHost(t *testing.T) {
	type piece struct {
		text  string
		begin int // the number of a command that begins
		end   int // or ends
	}
	var pieces []piece
	for i := 1; i <= 6; i++ {
		pieces = append(pieces, piece{text: fmt.Sprintf("prompt %d$ ", i)}, piece{begin: i}, piece{text: fmt.Sprintf("output of %d\r\n", i)})
		if i == 4 { // one within another
			pieces = append(pieces, piece{begin: 5}, piece{text: "within\r\n"}, piece{end: 5}, piece{end: 4})
			i++
			continue
		}
		pieces = append(pieces, piece{end: i})
	}
	// play sends all pieces from one on, and returns a reader's text there and behind.
	play := func(t *testing.T, from int) map[string]int64 {
		h, owner, uri := owned(t, host.Options{})
		off := int64(0)
		for i, p := range pieces {
			if i >= from {
				switch {
				case p.begin > 0:
					owner.dispatch(uri, ahp.TerminalCommandExecuted{CommandID: fmt.Sprintf("cmd-%d", p.begin), CommandLine: "x", Timestamp: 1})
				case p.end > 0:
					owner.dispatch(uri, ahp.TerminalCommandFinished{CommandID: fmt.Sprintf("cmd-%d", p.end)})
				default:
					owner.output(uri, p.text, off)
				}
			}
			off += int64(len(p.text))
		}
		owner.ping()
		x := only(t, h)
		r := must.Get(x.Read(0))(t)
		defer r.Close()
		seen, ended := map[string]int64{}, 0
		for {
			ev, ok, err := r.TryNext(make([]byte, 256))
			if err != nil || !ok {
				break
			}
			switch {
			case len(ev.Data) > 0 && !strings.Contains(string(ev.Data), "bytes of output are missing"):
				at := ev.Off - int64(len(ev.Data))
				for _, line := range strings.SplitAfter(string(ev.Data), "$ ") {
					seen[line] = at
					at += int64(len(line))
				}
			case ev.Missing > 0:
				seen["missing"] = ev.Off
			case ev.Finished != nil:
				ended++
				seen[fmt.Sprintf("end %s %d", ev.Finished.Text(), ev.Off)] = ev.Off
			}
		}
		if seen["end"] = x.Info().End; ended == 0 {
			t.Fatal("no command has ended")
		}
		return seen
	}
	whole := play(t, 0)
	if len(whole) < 15 || whole["missing"] != 0 {
		t.Fatalf("seen %v", whole)
	}
	for _, from := range []int{4, 9, 12} { // before a command begins, or the prompt before it
		part := play(t, from)
		if part["missing"] == 0 {
			t.Errorf("from %d: nothing is told of what is missing", from)
		}
		delete(part, "missing")
		for what, at := range part {
			if was, ok := whole[what]; !ok || was != at {
				t.Errorf("from piece %d: %q is at %d, was at %d", from, what, at, was)
			}
		}
	}
}

// A reader that continues inside a gap is told so, and one that continues behind it is
// not.
func TestReaderInAGap(t *testing.T) {
	h, owner, uri := owned(t, host.Options{})
	owner.output(uri, "first\r\n", 0)
	owner.output(uri, "later\r\n", 1000)
	owner.ping()
	x := only(t, h)
	for from, want := range map[int64]bool{0: true, 7: true, 500: true, 1000: false, 1003: false} {
		r := must.Get(x.Read(from))(t)
		missing, text := false, ""
		for {
			ev, ok, err := r.TryNext(make([]byte, 256))
			if !ok || err != nil {
				break
			}
			missing = missing || ev.Missing > 0
			text += string(ev.Data)
		}
		r.Close()
		if missing != want || !strings.HasSuffix(text, "er\r\n") {
			t.Errorf("from %d: missing %v, text %q", from, missing, text)
		}
	}
	if i := x.Info(); i.End != 1007 {
		t.Errorf("the end is %d", i.End)
	}
}
