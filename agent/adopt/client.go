package adopt

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// pauseAfter is how far tmux's output to a reader may be behind, in seconds, before tmux
// drops it and says so. It bounds tmux's memory for a reader that stands still.
const pauseAfter = 3

// client is the reader's connection to a tmux server: two clients in control mode.
//
// The first one gets the output. The second one gets none and does nothing. tmux stops
// reading a pane, and so its program, while all clients of the session are in control
// mode and lag: a reader that stands still would stop the program after the person has
// detached. A client without output never lags (server_client_check_pane_buffer in tmux's
// server-client.c, 3.2 to 3.7).
type client struct {
	pane    string
	session string // its id, as in "$1"
	out     *lines
	parser  parser
	foreign int // output of other panes that has come, see ask
	ended   sync.WaitGroup

	mu   sync.Mutex // guards in, of which lines are written whole
	in   io.WriteCloser
	idle io.WriteCloser // standard input of the second one
}

// attach connects to a session. It sends no size, changes no environment of the session
// (-E), and starts no server (-N). idle is called before the client waits.
func attach(socket, session, pane string, idle func()) (*client, error) {
	c := &client{pane: pane, session: session}
	idleIn, idleOut, err := c.start(socket, "no-output,ignore-size")
	if err != nil {
		return nil, err
	}
	c.idle = idleIn
	in, out, err := c.start(socket, fmt.Sprintf("ignore-size,pause-after=%d", pauseAfter))
	if err != nil {
		c.close()
		return nil, err
	}
	c.in, c.out = in, newLines(out, idle)
	c.ended.Go(func() {
		_, _ = io.Copy(io.Discard, idleOut)
		c.mu.Lock()
		defer c.mu.Unlock()
		in.Close() // without the second one the first one must not stay
	})
	return c, nil
}

func (c *client) start(socket, flags string) (io.WriteCloser, io.Reader, error) {
	cmd := exec.Command("tmux", "-u", "-N", "-S", socket, "-C", "attach-session", "-E", "-f", flags, "-t", c.session)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start tmux: %w", err)
	}
	c.ended.Go(func() { _, _ = cmd.Process.Wait() }) // not cmd.Wait, which closes out
	return in, out, nil
}

// close detaches. The server ends its clients when their input ends.
func (c *client) close() {
	c.mu.Lock()
	if c.in != nil {
		c.in.Close()
	}
	c.idle.Close()
	c.mu.Unlock()
}

// send writes whole lines of commands.
func (c *client) send(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(c.in, text)
	return err
}

// next returns the next event. It pauses other panes: tmux then reads them, but keeps
// nothing of them for this client. It never turns them off: without another client, tmux
// then does not read them, and their programs stand still.
func (c *client) next() (event, error) {
	l, err := c.out.next()
	if err != nil {
		return event{}, err
	}
	e := c.parser.line(l)
	if e.kind == kindOutput && e.pane != c.pane {
		c.foreign++
		err = c.send(pauseCommand(e.pane))
		return event{}, err
	}
	return e, err
}

func pauseCommand(pane string) string { return "refresh-client -A '" + pane + ":pause'\n" }

var (
	errFailed = errors.New("tmux refused a command")
	errMixed  = errors.New("the output of another pane came between")
)

// ask returns the output of each of the commands, and gives earlier events to before. The
// reply stands at its place in the pane's output, except after errMixed: a line waits for
// all panes' output that is older, so that newer output of this pane may overtake it
// while another one has some (control.c of tmux).
func (c *client) ask(before func(event), commands ...string) ([]part, error) {
	token := rand.Text()
	c.parser.expect(token)
	foreign := c.foreign
	if err := c.send(ask(token, commands...)); err != nil {
		return nil, err
	}
	for {
		e, err := c.next()
		if err != nil {
			return nil, err
		}
		switch e.kind {
		case kindReply:
			if c.foreign != foreign {
				return nil, errMixed
			}
			return e.parts, nil
		case kindFailed:
			return nil, errFailed
		case kindExit:
			return nil, io.EOF
		default:
			before(e)
		}
	}
}

// quiet pauses the session's other panes.
func (c *client) quiet(before func(event)) error {
	parts, err := c.ask(before, "list-panes -s -t '"+c.session+"' -F '#{pane_id}'")
	if err != nil && !errors.Is(err, errMixed) {
		return err
	}
	var b strings.Builder
	for _, p := range parts {
		for _, id := range p.lines {
			if pane := string(id); pane != c.pane && isPane(pane) {
				b.WriteString(pauseCommand(pane))
			}
		}
	}
	return c.send(b.String())
}

// isPane reports whether a text is a pane's id, which is safe in a command.
func isPane(id string) bool {
	digits, ok := strings.CutPrefix(id, "%")
	return ok && digits != "" && len(digits) < 11 && strings.Trim(digits, "0123456789") == ""
}

// typeKeys sends what is typed to the pane. It blocks while tmux does not read.
func (c *client) typeKeys(p []byte) error {
	var b bytes.Buffer
	for len(p) > 0 {
		n := min(len(p), maxKeys)
		fmt.Fprintf(&b, "send-keys -t '%s' -H", c.pane)
		for _, k := range p[:n] {
			fmt.Fprintf(&b, " %02x", k)
		}
		b.WriteByte('\n')
		p = p[n:]
	}
	return c.send(b.String())
}

// maxKeys bounds the keys of one command.
const maxKeys = 256
