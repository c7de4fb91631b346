package adopt

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
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

	programs []*program
	mu       sync.Mutex // held while a line is written to the first of them
}

// program is a process of tmux that is a client.
type program struct {
	process *os.Process
	in      io.WriteCloser
	out     io.ReadCloser
	ended   chan struct{}
}

// attach connects to a session. It sends no size, changes no environment of the session
// (-E), and starts no server (-N). idle is called before the client waits.
func attach(socket, session, pane string, idle func()) (*client, error) {
	c := &client{pane: pane, session: session}
	for _, flags := range []string{fmt.Sprintf("ignore-size,pause-after=%d", pauseAfter), "ignore-size,no-output"} {
		p, err := start("-u", "-N", "-S", socket, "-C", "attach-session", "-E", "-f", flags, "-t", session)
		if err != nil {
			c.close()
			return nil, err
		}
		c.programs = append(c.programs, p)
	}
	first, second := c.programs[0], c.programs[1]
	c.out = newLines(first.out, idle)
	go func() {
		_, _ = io.Copy(io.Discard, second.out)
		first.in.Close() // without the second one the first one must not stay
	}()
	return c, nil
}

func start(args ...string) (*program, error) {
	cmd := exec.Command("tmux", args...)
	p := &program{ended: make(chan struct{})}
	var err, err2 error
	p.in, err = cmd.StdinPipe()
	p.out, err2 = cmd.StdoutPipe()
	if err := cmp.Or(err, err2, cmd.Start()); err != nil {
		return nil, fmt.Errorf("start tmux: %w", err)
	}
	p.process = cmd.Process
	go func() {
		_, _ = p.process.Wait() // and not cmd.Wait, which closes out
		close(p.ended)
	}()
	return p, nil
}

// leaveTime is how long close waits for the clients to leave by themselves.
const leaveTime = time.Second

// close detaches, and waits until the clients have ended: the server ends them when their
// input ends.
//
// No client may attach while another one detaches: until 3.6, the server writes to a
// client in control mode whose start it has not completed, and crashes (issue 4980 of
// tmux). So a reader attaches again only after this.
func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	for _, p := range c.programs {
		p.in.Close()
		go func() { _, _ = io.Copy(io.Discard, p.out) }() // the server waits until it has sent all
	}
	for _, p := range c.programs {
		select {
		case <-p.ended:
		case <-ctx.Done(): // the server stands still
			_ = p.process.Kill()
		}
		p.out.Close()
	}
}

// send writes whole lines of commands.
func (c *client) send(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := io.WriteString(c.programs[0].in, text)
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

// await waits until the client is attached. tmux executes commands before, but their
// replies then stand before output that is not sent.
func (c *client) await(before func(event)) error {
	for {
		e, err := c.next()
		switch {
		case err != nil:
			return err
		case e.kind == kindExit:
			return io.EOF
		case e.kind == kindSession:
			return nil
		}
		before(e)
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
			if pane := string(id); pane != c.pane && IsTmuxPane(pane) {
				b.WriteString(pauseCommand(pane))
			}
		}
	}
	return c.send(b.String())
}

// IsTmuxPane reports whether a text is the id of a pane of tmux, such as %3, and no more:
// it is safe in a command.
func IsTmuxPane(id string) bool {
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
