package host_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/shellint"
)

// withoutMarks is a stream as a scanner that reads it whole passes it on.
func withoutMarks(stream string) string {
	s := shellint.NewScanner(shellint.Options{})
	var out strings.Builder
	at := int64(0)
	var r shellint.Result
	take := func() {
		for _, span := range r.Spans {
			if span.Class != shellint.ClassMark {
				continue
			}
			out.WriteString(stream[at:span.Start])
			if span.Splice {
				out.WriteString(shellint.Splice)
			}
			at = span.End
		}
	}
	s.Scan([]byte(stream), &r)
	take()
	s.Close(&r)
	take()
	out.WriteString(stream[at:])
	return out.String()
}

// plain is text without string terminators: a mark may leave one, which shows nothing.
func plain(text string) string { return strings.ReplaceAll(text, shellint.Splice, "") }

// OSC 133 and 633 of an owner that does not remove them reach nobody, in any division
// into actions; everything else does, and positions count the sent text.
func TestOwnersMarksAreStripped(t *testing.T) {
	pieces := []string{
		"\x1b]133;A\a", "\x1b]633;C;nonce\x1b\\", "\x1b]133;D;0\u009c", "\u009d633;E;ls\a", "\x1b\x00]133;B\a", "\x1b]0;title\a", "\x1b]1337;File=x\a",
		"\x1b[31m", "\x1b]", "\x1b", "]", "]133;A", "text ", "ä€\U0001F600", "\r\n", "[1,2]", "\\u001b]133", "\x1b]8;;http://a\a", "\x1b\x7f]633;A\a", "\x1bP\x1b]133;A\a", "\u009b1m", "\"", "\\",
	}
	random := rand.New(rand.NewPCG(5, 1))
	for range 300 {
		var b strings.Builder
		for range 1 + random.IntN(20) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		stream := b.String()
		h := steadyHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
		at := 0
		for rest := []rune(stream); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			piece := string(rest[:n])
			owner.output(uri, piece, int64(at))
			at, rest = at+len(piece), rest[n:]
		}
		owner.dispatch(uri, ahp.TerminalExited{ExitCode: new(int64(0))})
		owner.ping()
		watcher.await("the exit", func() bool { st := watcher.states[uri]; return st != nil && st.Lifecycle.Exited() })
		want := plain(withoutMarks(stream))
		if got := plain(watcher.textOf(uri)); got != want {
			t.Fatalf("%q: somebody who watched sees\n%q, want\n%q", stream, got, want)
		}
		late := connect(t, h, "late", viewOptions{subs: []string{uri}})
		if got := plain(late.textOf(uri)); got != want {
			t.Fatalf("%q: somebody who comes later sees\n%q, want\n%q", stream, got, want)
		}
		h.Close()
	}
}

// Text kept back at a gap appears before it, and the positions stay those of the owner.
func TestMarksAtAGap(t *testing.T) {
	h := steadyHost(t, host.Options{})
	owner := connect(t, h, "laptop", viewOptions{resume: true})
	owner.create(uri)
	watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
	owner.output(uri, "\x1b]133;A\aa\x1b", 0)
	owner.output(uri, "]133;A\ab", 110)
	owner.output(uri, "]133;A\abc", 110) // the last byte is new
	owner.ping()
	watcher.awaitText(uri, "\x07bc")
	if got, want := watcher.textOf(uri), "\x1b\\a\x1b\r\n[tether: 100 bytes of output are missing here]\r\n]133;A\abc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A sequence that a mark ended is ended without it, too.
func TestMarksEndOpenSequences(t *testing.T) {
	h := steadyHost(t, host.Options{})
	owner := connect(t, h, "laptop", viewOptions{resume: true})
	owner.create(uri)
	watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
	owner.output(uri, "\x1bPq", 0)
	owner.output(uri, "\x1b]133;A\atext", 3)
	watcher.awaitText(uri, "text")
	if got, want := watcher.textOf(uri), "\x1bPq\x1b\\text"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
