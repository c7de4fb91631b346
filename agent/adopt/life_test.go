package adopt_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// drawn ends the part of a picture before the cursor and the modes.
const drawn = "\x1b)B"

// TestShows adopts panes in all kinds of states, and compares what the reader shows with
// what tmux shows, then and after more output.
func TestShows(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 8)
	for name, output := range map[string]string{
		"nothing":                   "",
		"few lines":                 `one\r\ntwo\r\nthree`,
		"a screen that was cleared": `one\r\ntwo\r\n\033[H\033[2Jthree\r\n`,
		"wrapped lines":             long + long + `abc\r\n` + long[:79] + `編編` + `\r\nend`,
		"behind the last column":    `one\r\n` + long,
		"a wrapped line cut short":  long + long + `\033[3A\033[2C\033[K\r\n\n\n`,
		"alternate screen":          `one\r\ntwo\033[?1049h\033[H\033[44mblue\033[K\033[5;7Hx\033[m\033[8;1H`,
		"alternate over history":    strings.Repeat(`line\r\n`, 40) + `\033[?1049h\033[3;4Htop`,
		"a scrolling region":        `\033[2J\033[5;10r\033[10;1Hlow\r\nlower\r\n`,
		"origin mode":               `\033[5;10r\033[?6h\033[2;3Hhere`,
		"colours at the bottom":     strings.Repeat(`\033[41mred\033[K\r\n\033[m`, 30),
		"tab stops":                 `\033[3g\033[5G\033H\033[9G\033H\ra\tb\tc`,
		"links":                     `\033]8;;https://example.org\033\\link\033]8;;\033\\ rest`,
		"an unfinished sequence":    `\033[3mx\033[38;5;`,
		"no wrapping":               `\033[?7l` + long + long,
		"invisible cursor":          `a\033[?25l\033[?1h\033=\033[?1002h\033[?1006h\033[4h`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, "exec sh")
			s.tmux("respawn-pane", "-k", "-t", "%0", fmt.Sprintf("stty raw -echo; printf '%s'; exec cat", strings.ReplaceAll(output, `'`, `'\''`)))
			if output != "" {
				testkit.Eventually(t, testkit.Patience, "it is printed", func() bool { return s.ask("%0", "#{cursor_x},#{cursor_y}") != "0,0" })
			}
			r := s.adopt("%0")
			r.await(0, drawn)
			s.same(r, "%0", "the adoption")
			more := []string{"1mz", "\ty", "\r\nnext", "\x1b[A\x1b[7Cup", "\r\n\n\n\nlow"}
			if strings.HasPrefix(name, "alternate") {
				more = append(more, "\x1b[?1049lback")
			}
			for _, more := range append(more, "\r\n"+long+"w") {
				s.tmux(append([]string{"send-keys", "-t", "%0", "-H"}, strings.Fields(fmt.Sprintf("% x", more))...)...)
			}
			s.same(r, "%0", "more output")
		})
	}
}

// TestFoundAgain detaches the reader in several ways, and moves the pane.
func TestFoundAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec cat")
	s.tmux("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "exec cat")
	pane := s.tmux("new-window", "-d", "-t", "main:", "-P", "-F", "#{pane_id}", "exec cat")
	r := s.adopt(pane)
	r.await(0, drawn)
	for i, move := range [][]string{
		{"detach-client", "-t", strings.Split(s.tmux("list-clients", "-F", "#{client_name}"), "\n")[0]},
		{"break-pane", "-d", "-s", pane},
		{"join-pane", "-d", "-h", "-s", pane, "-t", "other:"},
		{"break-pane", "-d", "-s", pane, "-t", "main:"},
		{"resize-window", "-t", pane, "-x", "60", "-y", "20"},
		{"swap-pane", "-d", "-s", pane, "-t", "%1"},
	} {
		s.tmux(move...)
		s.tmux("send-keys", "-t", pane, fmt.Sprintf("line %d", i), "Enter")
		r.await(0, fmt.Sprintf("line %d\r\nline %d", i, i))
		s.same(r, pane, strings.Join(move, " "))
	}
	s.tmux("respawn-pane", "-k", "-t", pane, "exec cat") // another program: not what was adopted
	if status := r.awaitEnd(); status != 0 {
		t.Errorf("status %d after another program has taken the pane", status)
	}
}

// TestEnds ends the pane and the server.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remain string
		end    []string
		status int
		says   string
	}{
		"exit that stays":   {"on", []string{"send-keys", "-t", "%0", "exit 7", "Enter"}, 7, ""},
		"killed that stays": {"on", []string{"send-keys", "-t", "%0", "kill -9 $$", "Enter"}, 128 + 9, ""},
		"exit":              {"off", []string{"send-keys", "-t", "%0", "exit 7", "Enter"}, 0, "[the pane has ended]"},
		"killed":            {"off", []string{"kill-pane", "-t", "%0"}, 0, "[the pane has ended]"},
		"session":           {"off", []string{"kill-session", "-t", "main"}, 0, "[the pane has ended]"},
		"server":            {"off", []string{"kill-server"}, 0, "[the tmux server has ended]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, "exec sh")
			s.tmux("new-session", "-d", "-s", "other", "exec cat")
			s.tmux("set-option", "-g", "remain-on-exit", c.remain)
			r := s.adopt("%0")
			r.await(0, drawn)
			s.same(r, "%0", "the adoption")
			must.Do(t, s.command(c.end...).Run())
			status := r.awaitEnd()
			if c.remain == "on" && s.ask("%0", "#{pane_dead_status}#{pane_dead_signal}") == "" { // tmux 3.3 loses it now and then
				c.status, c.says = 0, "[the pane has ended]"
			}
			if status != c.status || !strings.Contains(string(r.output()), c.says) {
				t.Errorf("status %d, want %d; %q", status, c.status, r.output())
			}
		})
	}
}

// TestTyping types at a reader: only one that may type passes it on, byte by byte.
func TestTyping(t *testing.T) {
	t.Parallel()
	s := startServer(t, "stty raw -echo; echo ready; exec cat -v")
	p := s.find("%0")
	mute, typing := startReader(t, p, false), startReader(t, p, true)
	mute.await(0, "ready")
	typing.await(0, "ready")
	must.Get(mute.pty.Write([]byte("mute")))(t)
	must.Get(typing.pty.Write([]byte("a;'\"$\x01\x1b[A\x7fé~\r" + strings.Repeat("x", 700) + ".")))(t)
	typing.await(0, "x.")
	s.same(typing, "%0", "the typing")
	out := string(typing.output())
	if !strings.Contains(out, `a;'"$^A^[[A^?M-CM-)~`) || strings.Contains(out, "mute") || strings.Count(out, "x") < 700 {
		t.Errorf("the pane shows %q", out)
	}
}
