package adopt_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// TestNoTrace looks at a pane every 50 ms while it is adopted twice: its content, its
// size, what its program gets, and what its client is shown do not change. Afterwards
// the server is as it was before.
func TestNoTrace(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec sh")
	heard, typed := s.file("heard"), s.file("typed")
	s.tmux("respawn-pane", "-k", "-t", "%0", fmt.Sprintf("stty raw -echo; trap 'echo winch >> %s' WINCH; seq 100; printf 'ready\\033[?1000h\\033[?2004h\\033[2;5H'; while :; do dd bs=1 count=1 2>/dev/null >> %s; done", heard, typed))
	client := s.attach()
	client.await(0, "ready")
	server := func() string {
		return strings.Join([]string{
			s.tmux("list-sessions", "-F", "#{session_id} #{session_name} #{session_attached} #{session_windows}"),
			s.tmux("list-clients", "-F", "#{client_name} #{client_width}x#{client_height} #{client_flags}"),
			s.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_width}x#{pane_height} #{pane_mode} #{pane_pipe} #{window_flags} #{window_layout}"),
			s.tmux("show-options", "-g"), s.tmux("show-options"), s.tmux("show-options", "-s"), s.tmux("show-hooks", "-g"), s.tmux("show-environment"), s.tmux("list-buffers"),
		}, "\n")
	}
	content := func() string {
		return s.tmux("capture-pane", "-e", "-p", "-S", "-", "-t", "%0") + s.ask("%0", "#{pane_width}x#{pane_height} #{window_width}x#{window_height} #{cursor_x},#{cursor_y} #{pane_mode}")
	}
	before, shown := server(), content()
	looks := 0
	look := func(d time.Duration) {
		t.Helper()
		for end := time.Now().Add(d); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
			looks++
			if now := content(); now != shown {
				t.Fatalf("the pane shows\n%s\nwant\n%s", now, shown)
			}
		}
	}
	look(200 * time.Millisecond)
	drawn := client.length()
	for range 2 {
		r := s.adopt("%0")
		for r.length() == 0 {
			look(50 * time.Millisecond)
		}
		s.same(r, "%0", "the adoption")
		look(500 * time.Millisecond)
		r.kill()
		look(200 * time.Millisecond)
	}
	testkit.Eventually(t, testkit.Patience, "the server is as it was", func() bool { return server() == before })
	look(200 * time.Millisecond)
	if more := cursor.ReplaceAll(client.output()[drawn:], nil); len(more) > 0 {
		t.Errorf("the pane's client was sent %q", more)
	}
	for _, path := range []string{heard, typed} {
		if got, _ := os.ReadFile(path); len(got) > 0 {
			t.Errorf("the pane's program got %q", got)
		}
	}
	t.Logf("%d looks", looks)
}

// cursor is what tmux sends to a client when nothing has changed: the cursor and, some
// seconds after it has attached, a mode for which it waited that the terminal answers.
var cursor = regexp.MustCompile("\x1b\\[\\?(?:25[hl]|12l|7727h)")

// TestHubIsKilled kills the process that reads two panes: their readers go on with
// another one, after a gap.
func TestHubIsKilled(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec sh")
	s.tmux("split-window", "-d", "exec sh")
	panes := []string{"%0", "%1"}
	var readers []*terminal
	for _, pane := range panes {
		readers = append(readers, s.adopt(pane))
		s.prints(pane, "echo before")
		s.same(readers[len(readers)-1], pane, "the adoption")
	}
	first := s.hub()[0]
	signal(t, "KILL", first)
	for n, pane := range panes {
		readers[n].await(0, gapMark)
		s.prints(pane, "echo after")
		s.same(readers[n], pane, "the hub's end")
	}
	if s.hub()[0] == first || len(strings.Fields(s.tmux("list-clients", "-F", "#{client_name}"))) != 2 {
		t.Errorf("the clients are %q, of the hub %v", s.tmux("list-clients"), s.hub())
	}
}

// TestFrozen stops the reader, and then what reads its terminal, while the session's
// panes print. Nothing stands still, and the screen is right afterwards.
func TestFrozen(t *testing.T) {
	t.Parallel()
	frozen := 4 * time.Second // tmux pauses the reader after three
	if testkit.Soaking() {
		frozen = time.Minute
	}
	for _, attached := range []bool{false, true} {
		for _, what := range []string{"reader", "hub", "clients", "terminal"} {
			t.Run(fmt.Sprintf("%s attached=%v", what, attached), func(t *testing.T) {
				t.Parallel()
				s := startServer(t, "exec sh")
				s.tmux("split-window", "-d", "-t", "%0", "exec sh")
				s.tmux("new-window", "-d", "exec sh")
				panes := []string{"%0", "%1", "%2"}
				if attached {
					s.attach()
				}
				for _, pane := range panes {
					s.tmux("respawn-pane", "-k", "-t", pane, fmt.Sprintf("until [ -e %s ]; do seq 2000; sleep 0.02; echo -n x >> %s; done; clear; echo QUIET; exec cat", s.file("quiet"), s.file(pane)))
				}
				r := s.adopt("%0")
				r.await(0, "1999")
				stopped := []int{r.pid()}
				if hub := s.hub(); what == "hub" {
					stopped = hub[:1]
				} else if what == "clients" {
					stopped = hub[1:]
				}
				if what == "terminal" {
					r.freeze(true)
				} else {
					signal(t, "STOP", stopped...)
				}
				until := time.Now().Add(frozen)
				for n := 0; time.Now().Before(until) || n < 3; n++ {
					before := make([]int64, len(panes))
					for i, pane := range panes {
						before[i] = count(s.file(pane))
					}
					<-time.After(frozen / 8)
					for i, pane := range panes {
						testkit.Eventually(t, testkit.Patience, pane+" goes on", func() bool { return count(s.file(pane)) > before[i] })
					}
				}
				must.Do(t, os.WriteFile(s.file("quiet"), nil, 0o600))
				r.freeze(false)
				if what != "terminal" {
					signal(t, "CONT", stopped...)
				}
				s.same(r, "%0", "the reader went on")
			})
		}
	}
}
