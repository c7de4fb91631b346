package attach

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// A message about lending is neither in a program's screen nor in the middle of a control
// sequence, where pieces of endless output may be cut.
func TestLentIsShownBetweenSequences(t *testing.T) {
	var out strings.Builder
	printed := out.String
	stderr := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	defer stderr.Close()
	notice := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	s := &Session{opts: Options{ID: "pty-a", Notice: notice, Err: stderr}, name: "web", unsaid: "is shared with lab"}
	for _, piece := range []string{"\x1b", "[3", "1m\x1b[?1049h", "screen\x1b[?1049l\x1b["} {
		_, _ = s.modes.Write([]byte(piece))
		if s.sayLent(); printed() != "" {
			t.Fatalf("after %q it says %q", piece, printed())
		}
	}
	_, _ = s.modes.Write([]byte("0mtext"))
	if s.sayLent(); !strings.Contains(printed(), "web is shared with lab") {
		t.Errorf("it says %q", printed())
	}
	said := printed()
	if s.sayLent(); printed() != said {
		t.Errorf("it says it again: %q", printed())
	}
}

// A notice comes from any goroutine, also while output is printed. It is a test for the
// race detector.
func TestNoticeWhilePrinting(t *testing.T) {
	out := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	defer out.Close()
	s := &Session{opts: Options{Out: out, Notice: func(string, ...any) {}}, interactive: true, own: true}
	noticed := make(chan struct{})
	go func() {
		defer close(noticed)
		for range 100 {
			s.Notice("the daemon does not answer")
		}
	}()
	for range 100 {
		must.Do(t, s.print([]byte("\x1b[?1049h\x1b[?1049l")))
	}
	<-noticed
}
