package adopt_test

import (
	"os"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// TestStates adopts panes that are used in some special way, also while it begins and
// ends. The reader shows what tmux shows; nothing is typed, and nothing else changes.
func TestStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client []string   // arguments of attach-session; nil without a client
		before [][]string // commands of tmux before the adoption
		after  [][]string // and while the pane is adopted
	}{
		"read-only client":            {client: []string{"-r"}},
		"client without a size":       {client: []string{"-f", "ignore-size"}, after: [][]string{{"resize-window", "-t", "%0", "-x", "70", "-y", "20"}}},
		"locked session":              {client: []string{}, before: [][]string{{"lock-session", "-t", "main"}}},
		"session that is locked":      {client: []string{}, after: [][]string{{"lock-session", "-t", "main"}, {"lock-server"}}},
		"all clients detached":        {client: []string{}, after: [][]string{{"detach-client", "-s", "main"}}},
		"all detached and hung up":    {after: [][]string{{"detach-client", "-P", "-s", "main"}}},
		"all detached for a command":  {after: [][]string{{"detach-client", "-E", "exec sleep 100", "-s", "main"}}},
		"destroy-unattached":          {client: []string{}, before: [][]string{{"set-option", "-t", "main", "destroy-unattached", "on"}}},
		"copy mode":                   {before: [][]string{{"copy-mode", "-t", "%0"}, {"send-keys", "-t", "%0", "-X", "history-top"}}},
		"copy mode with a selection":  {before: [][]string{{"copy-mode", "-t", "%0"}, {"send-keys", "-t", "%0", "-X", "begin-selection"}, {"send-keys", "-t", "%0", "-X", "-N", "5", "cursor-up"}}},
		"copy mode later":             {after: [][]string{{"copy-mode", "-t", "%0"}, {"send-keys", "-t", "%0", "-X", "page-up"}}},
		"choose-tree":                 {client: []string{}, before: [][]string{{"choose-tree", "-t", "%0"}}},
		"choose-tree later":           {client: []string{}, after: [][]string{{"choose-tree", "-t", "%0"}}},
		"clock":                       {before: [][]string{{"clock-mode", "-t", "%0"}}},
		"synchronized panes":          {before: [][]string{{"split-window", "-d", "-t", "%0", "exec cat"}, {"set-option", "-w", "-t", "%0", "synchronize-panes", "on"}}},
		"zoomed":                      {before: [][]string{{"split-window", "-d", "-t", "%0", "exec cat"}, {"resize-pane", "-Z", "-t", "%0"}}},
		"behind a zoomed one":         {before: [][]string{{"split-window", "-d", "-t", "%0", "exec cat"}, {"resize-pane", "-Z", "-t", "%1"}}},
		"zoomed later":                {before: [][]string{{"split-window", "-d", "-t", "%0", "exec cat"}}, after: [][]string{{"resize-pane", "-Z", "-t", "%0"}, {"resize-pane", "-Z", "-t", "%0"}, {"resize-pane", "-Z", "-t", "%1"}}},
		"input that is off":           {before: [][]string{{"select-pane", "-d", "-t", "%0"}}},
		"a pipe of the person's":      {before: [][]string{{"pipe-pane", "-O", "-t", "%0", "exec cat >/dev/null"}}},
		"a hook that detaches":        {before: [][]string{{"set-hook", "-g", "client-detached", "detach-client -a"}}, after: [][]string{{"detach-client", "-s", "main"}}},
		"detach-on-destroy off":       {before: [][]string{{"set-option", "-g", "detach-on-destroy", "off"}, {"new-session", "-d", "-s", "other", "exec cat"}}},
		"a session group":             {before: [][]string{{"new-session", "-d", "-s", "other", "-t", "main"}}},
		"remain-on-exit, and no size": {before: [][]string{{"set-option", "-g", "remain-on-exit", "on"}, {"set-option", "-g", "window-size", "manual"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, "exec sh")
			s.tmux("set-option", "-g", "lock-command", "exec cat >/dev/null")
			typed := s.file("typed")
			s.tmux("respawn-pane", "-k", "-t", "%0", "stty raw -echo; seq 40; printf '\\rready'; exec cat >>"+typed)
			testkit.Eventually(t, testkit.Patience, "the pane is ready", func() bool { return strings.Contains(s.tmux("capture-pane", "-p", "-t", "%0"), "ready") })
			if c.client != nil {
				s.attach(c.client...).await(0, "ready")
			}
			for _, command := range c.before {
				s.tmux(command...)
			}
			state := func() string {
				clients := []string{s.ask("%0", "#{pane_id} #{pane_pid} #{pane_mode} #{window_zoomed_flag} #{pane_synchronized} #{pane_input_off} #{pane_pipe} #{alternate_on} #{selection_present} #{scroll_position} #{pane_width}x#{pane_height}"),
					s.tmux("list-sessions", "-F", "#{session_name} #{session_group}")}
				for client := range strings.Lines(s.tmux("list-clients", "-F", "#{client_control_mode} #{client_name} #{client_width}x#{client_height} #{client_flags} #{client_readonly}")) {
					if strings.HasPrefix(client, "0 ") {
						clients = append(clients, strings.TrimSpace(client))
					}
				}
				return strings.Join(clients, "\n")
			}
			print := func(text string) {
				must.Do(t, os.WriteFile(s.ask("%0", "#{pane_tty}"), []byte(text), 0))
			}
			before := state()
			r := s.adopt("%0")
			s.same(r, "%0", "the adoption")
			print("\r\none\x1b[31m two\x1b[m")
			s.same(r, "%0", "printing")
			if now := state(); now != before {
				t.Errorf("while it is adopted:\n%s\nwant\n%s", now, before)
			}
			for _, command := range c.after {
				s.tmux(command...)
				print("\r\nafter " + command[0])
				r.await(0, "after "+command[0])
				s.same(r, "%0", strings.Join(command, " "))
			}
			before = state()
			r.kill()
			testkit.Eventually(t, testkit.Patience, "its clients have left", func() bool {
				return !strings.Contains(s.tmux("list-clients", "-F", "#{client_control_mode}"), "1")
			})
			if now := state(); now != before {
				t.Errorf("after it was adopted:\n%s\nwant\n%s", now, before)
			}
			if got, _ := os.ReadFile(typed); len(got) > 0 {
				t.Errorf("the pane's program got %q", got)
			}
		})
	}
}

// TestSizeOfReadOnlyClient resizes the terminal of a session's only client, which sends
// nothing else: its size counts while no other one has any.
func TestSizeOfReadOnlyClient(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec sh")
	client := s.attach("-r")
	r := s.adopt("%0")
	s.same(r, "%0", "the adoption")
	must.Do(t, client.pty.Resize(pty.Size{Cols: 100, Rows: 30}))
	testkit.Eventually(t, testkit.Patience, "the pane has the client's size", func() bool { return s.ask("%0", "#{pane_width}x#{pane_height}") == "100x30" })
	s.prints("%0", "echo larger")
	s.same(r, "%0", "the client was resized")
}
