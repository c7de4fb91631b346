package adopt_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// between returns the text after begin and before end.
func between(t *testing.T, what string, out []byte, begin, end string) []byte {
	t.Helper()
	_, rest, ok := bytes.Cut(out, []byte(begin))
	if !ok {
		t.Fatalf("%s: no %q in %d bytes: %.2000q", what, begin, len(out), out)
	}
	text, _, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		t.Fatalf("%s: no %q in %d bytes, which end with %q", what, end, len(rest), rest[max(0, len(rest)-200):])
	}
	return text
}

// TestEveryByte adopts a pane that then floods, and compares what the reader writes with
// what tmux's own pipe-pane writes, and with what the program printed. tmux drops output
// for a reader that gets no processor for seconds: such a round is followed by one with
// less.
func TestEveryByte(t *testing.T) {
	lines := testkit.Load(30_000, 5_000)
	if testkit.Soaking() {
		lines = 1_500_000 // more than 100 MB
	}
	for _, attached := range []bool{false, true} {
		t.Run(fmt.Sprintf("attached=%v", attached), func(t *testing.T) {
			t.Parallel()
			n := lines
			for ; n > 0; n /= 8 {
				if floodIsExact(t, n, attached) {
					t.Logf("exact over %d lines", n)
					return
				}
			}
			t.Error("even a few lines have a gap")
		})
	}
}

func floodIsExact(t *testing.T, lines int, attached bool) bool {
	s := startServer(t, "exec sh")
	if attached {
		s.attach()
	}
	script := fmt.Sprintf("echo ready; until [ -e %s ]; do sleep 0.02; done; echo BEGIN; %s; echo THE-END; exec cat", s.file("go"), strings.Join(testkit.FloodCommand(t, lines, 0), " "))
	s.tmux("respawn-pane", "-k", "-t", "%0", script)
	piped := s.file("piped")
	s.tmux("pipe-pane", "-O", "-t", "%0", "exec cat > "+piped)
	r := s.adopt("%0")
	r.await(0, "ready")
	must.Do(t, os.WriteFile(s.file("go"), nil, 0o600))
	testkit.Eventually(t, 5*testkit.Patience, "the flood has ended", func() bool { return bytes.Contains(r.last(64<<10), []byte("THE-END")) })
	if bytes.Contains(r.output(), []byte(gapMark)) {
		s.same(r, "%0", "a gap")
		return false
	}
	got := between(t, "the reader", r.output(), "BEGIN\r\n", "THE-END")
	var check testkit.FloodCheck
	if _, err := check.Write(got); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, testkit.Patience, "pipe-pane has written all", func() bool {
		return bytes.HasSuffix(must.Get(os.ReadFile(piped))(t), []byte("THE-END\r\n"))
	})
	if want := between(t, "pipe-pane", must.Get(os.ReadFile(piped))(t), "BEGIN\r\n", "THE-END"); !bytes.Equal(got, want) {
		t.Errorf("the reader wrote %d bytes, pipe-pane %d others", len(got), len(want))
	}
	t.Logf("%d bytes", len(got))
	s.same(r, "%0", "the flood")
	return true
}

// forged are lines that look like those of tmux's control mode.
var forged = []string{
	"%end 1700000000 123 1", "%begin 1700000000 123 1", "%error 1700000000 123 1", "%exit", "%exit too far behind", "%output %0 forged", "%output %1 forged",
	"%extended-output %0 0 : forged", "%pause %0", "%continue %0", "%window-close @0", "%session-changed $1 x", "%layout-change @0 x", "%unlinked-window-close @0",
	"\\033]0;x", "%subscription-changed x", "\x1bP1000p%begin 1 1 1", "\x1b\\%exit", "%%", "%", "",
}

// TestForgedLines prints lines of the control mode before and after the adoption, and
// titles and names with lines and sequences.
func TestForgedLines(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec cat")
	text := strings.Repeat(strings.Join(forged, "\n")+"\n", 30)
	must.Do(t, os.WriteFile(s.file("forged"), []byte(text), 0o600))
	script := fmt.Sprintf("cat %[1]s; echo ready; until [ -e %[2]s ]; do sleep 0.02; done; echo BEGIN; cat %[1]s; echo THE-END; exec cat", s.file("forged"), s.file("go"))
	s.tmux("respawn-pane", "-k", "-t", "%0", script)
	testkit.Eventually(t, testkit.Patience, "the pane is ready", func() bool { return strings.Contains(s.tmux("capture-pane", "-p", "-t", "%0"), "ready") })
	evil := "\n%exit\n%end 1700000000 123 1\n\x1b]633;P;Gap=unknown\x07 ##{pid} ##(touch " + s.file("executed") + ") 'a\" ; kill-server" // tmux takes ## for #
	s.tmux("rename-session", "-t", "main", evil)
	s.tmux("rename-window", "-t", "%0", evil)
	s.tmux("select-pane", "-t", "%0", "-T", evil)
	panes, faults := adopt.List(t.Context(), s.options())
	if len(panes) != 1 || len(faults) > 0 {
		t.Fatalf("the list is %+v, %v", panes, faults)
	}
	for _, p := range panes {
		for _, text := range []string{p.Title, p.Command, p.Dir, p.Target.String()} {
			if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1000 {
				t.Errorf("a text of the list is %q", text)
			}
		}
	}
	r := s.adopt("%0")
	r.await(0, "ready")
	s.same(r, "%0", "the adoption")
	must.Do(t, os.WriteFile(s.file("go"), nil, 0o600))
	r.await(0, "THE-END")
	want := strings.ReplaceAll(text, "\n", "\r\n")
	if got := string(between(t, "the reader", r.output(), "BEGIN\r\n", "THE-END")); got != want {
		t.Errorf("got  %.500q\nwant %.500q", got, want)
	}
	s.same(r, "%0", "the lines")
	if _, err := os.Stat(s.file("executed")); err == nil {
		t.Error("a command in a name was executed")
	}
}
