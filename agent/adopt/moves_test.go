package adopt_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// TestPanesThatMove does to an adopted pane and its server what people do with them.
// After each step the pane prints, and the reader shows what tmux shows.
func TestPanesThatMove(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec sh")
	s.tmux("set-option", "-g", "remain-on-exit", "on")
	s.tmux("new-session", "-d", "-s", "other", "-x", "60", "-y", "20", "exec cat")
	s.tmux("split-window", "-d", "-t", "main:", "exec cat", ";", "new-window", "-d", "-t", "main:8", "exec cat")
	r := s.adopt("%0")
	s.same(r, "%0", "the adoption")
	type step []string
	steps := []step{
		{"resize-pane", "-t", "%0", "-y", "5"},
		{"resize-pane", "-Z", "-t", "%0"},
		{"resize-pane", "-Z", "-t", "%0"},
		{"swap-pane", "-d", "-s", "%0", "-t", "%2"},
		{"rotate-window", "-t", "main:"},
		{"select-layout", "-t", "main:", "even-horizontal"},
		{"break-pane", "-d", "-s", "%0"},
		{"join-pane", "-d", "-h", "-s", "%0", "-t", "other:"},
		{"swap-pane", "-d", "-s", "%0", "-t", "%2"},
		{"break-pane", "-d", "-s", "%0", "-t", "other:7"},
		{"move-window", "-s", "other:7", "-t", "main:9"},
		{"link-window", "-s", "main:9", "-t", "other:3"},
		{"unlink-window", "-t", "main:9"},
		{"set-option", "-g", "default-size", "100x30"},
		{"resize-window", "-t", "%0", "-x", "33", "-y", "11"},
		{"set-option", "-w", "-t", "%0", "synchronize-panes", "on"},
		{"copy-mode", "-t", "%0"},
		{"send-keys", "-X", "-t", "%0", "history-top"},
		{"send-keys", "-X", "-t", "%0", "cancel"},
		{"clear-history", "-t", "%0"},
		{"clock-mode", "-t", "%0"},
		{"send-keys", "-t", "%0", "q"},
		{"rename-session", "-t", "other", "a'b\"c;d#{pid}"},
		{"kill-session", "-t", "main"},
		{"resize-window", "-t", "%0", "-x", "80", "-y", "24"},
	}
	for n, step := range steps {
		s.tmux(step...)
		if s.ask("%0", "#{pane_mode}") != "" { // which takes the keys
			s.same(r, "%0", strings.Join(step, " "))
			continue
		}
		s.prints("%0", fmt.Sprintf("echo after step %d, long enough to be broken at the margin of a small pane %d", n, n))
		s.same(r, "%0", strings.Join(step, " "))
	}
	s.prints("%0", "exit 7")
	code, dead := r.awaitEnd(), s.ask("%0", "#{pane_dead} #{pane_dead_status}")
	if lost := code == 0 && dead == "1 "; !lost && (code != 7 || dead != "1 7") { // tmux 3.3 loses it now and then
		t.Errorf("the reader ended with %d, and the dead pane is %q", code, dead)
	}
}

// prints types a command for the shell in a pane, and waits until it has been executed.
func (s *server) prints(pane, command string) {
	s.t.Helper()
	done := s.file("done")
	s.tmux("send-keys", "-t", pane, "-l", command+"; : > "+done)
	s.tmux("send-keys", "-t", pane, "-H", "0d")
	if strings.HasPrefix(command, "exit") {
		return
	}
	testkit.Eventually(s.t, testkit.Patience, command, func() bool {
		_, err := os.Stat(done)
		return err == nil
	})
	must.Do(s.t, os.Remove(done))
}

// TestPanesWithPrograms adopts panes while programs draw on the whole screen.
func TestPanesWithPrograms(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"less", "vim", "top", "nano"} {
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		s := startServer(t, "exec sh")
		text := s.file("text")
		must.Do(t, os.WriteFile(text, []byte(strings.Repeat("a line of text with 目录 and 🙂\n", 200)), 0o600))
		s.prints("%0", "seq 30")
		start := map[string]string{"less": "less " + text, "vim": "vim -u NONE -N " + text, "top": "top -d 100", "nano": "nano " + text}[program]
		s.tmux("send-keys", "-t", "%0", "-l", start)
		s.tmux("send-keys", "-t", "%0", "-H", "0d")
		testkit.Eventually(t, testkit.Patience, program+" draws", func() bool { return s.ask("%0", "#{pane_current_command}") == program })
		r := s.adopt("%0")
		s.same(r, "%0", "adopting "+program)
		for _, key := range []string{"NPage", "NPage", "Down"} {
			s.tmux("send-keys", "-t", "%0", key)
			s.same(r, "%0", key+" in "+program)
		}
		s.tmux("resize-window", "-t", "%0", "-x", "60", "-y", "15")
		s.same(r, "%0", "resizing "+program)
	}
}

// TestServersThatEnd kills servers, and starts others at the same socket whose panes have
// the same numbers. A reader never reads another pane than its own.
func TestServersThatEnd(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"kill-pane", "kill-session", "kill-server", "KILL", "STOP"} {
		s := startServer(t, "echo first; exec cat")
		s.tmux("split-window", "-d", "exec cat")
		r := s.adopt("%0")
		r.await(0, "first")
		pid := s.ask("%0", "#{pid}")
		switch how {
		case "KILL":
			must.Do(t, exec.Command("kill", "-KILL", pid).Run())
		case "STOP":
			must.Do(t, exec.Command("kill", "-STOP", pid).Run())
			if _, faults := adopt.List(context.Background(), s.options()); len(faults) != 1 {
				t.Errorf("a stopped server is not told: %v", faults)
			}
			must.Do(t, exec.Command("kill", "-CONT", pid).Run())
			s.tmux("send-keys", "-t", "%0", "-l", "going on")
			s.same(r, "%0", "the server went on")
			continue
		case "kill-pane":
			s.tmux(how, "-t", "%0")
		default:
			s.tmux(how)
		}
		if how != "kill-pane" {
			testkit.Eventually(t, testkit.Patience, "another server has started", func() bool {
				return s.command("-f", "/dev/null", "new-session", "-d", "echo SECOND; exec cat").Run() == nil
			})
		}
		if code := r.awaitEnd(); code != 0 {
			t.Errorf("%s: the reader ended with %d", how, code)
		}
		if out := string(r.output()); strings.Contains(out, "SECOND") {
			t.Errorf("%s: the reader reads another pane: %q", how, out)
		}
		if how != "kill-pane" && s.tmux("list-clients") != "" {
			t.Errorf("%s: the new server has clients", how)
		}
	}
}
