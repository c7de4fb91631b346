package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// pauseAfter is how far tmux's output to a client may be behind, in seconds, before tmux
// drops it and says so. It bounds tmux's memory for a client that stands still.
const pauseAfter = 3

// client is a connection to one session, for the views of its panes: two clients of tmux
// in control mode.
//
// The first one gets the output. The second one gets none and does nothing. tmux stops
// reading a pane, and so its program, while all clients of the session are in control
// mode and lag: a reader that stands still would stop the program after the person has
// detached. A client without output never lags (server_client_check_pane_buffer in tmux's
// server-client.c, 3.2 to 3.7).
//
// All panes share them, because each event in a tmux server takes a time that grows with
// clients times panes, and each change of size one that grows with the clients' square.
type client struct {
	session  string // its id, as in "$1"
	programs []*program
	asking   chan struct{} // 1 slot: one question at a time; freed with its reply
	attached chan struct{} // closed when tmux has attached the first one
	ended    chan struct{} // closed by read when err is set
	err      error
	write    sync.Mutex // held while a line is written to the first one

	mu     sync.Mutex
	parser parser
	views  map[string]*view // by pane
	asker  *view            // which gets the reply
	mixed  bool             // another pane has printed since the question
}

// program is a process of tmux that is a client.
type program struct {
	process *os.Process
	in      io.WriteCloser
	out     io.ReadCloser
	ended   chan struct{}
}

// attach connects to a session. It sends no size, changes no environment of the session
// (-E), and starts no server (-N). It waits until the client is attached: tmux executes
// commands before, but their replies then stand before output that is not sent.
func attach(socket, session string) (*client, error) {
	c := &client{session: session, asking: make(chan struct{}, 1), attached: make(chan struct{}), ended: make(chan struct{}), views: map[string]*view{}}
	for _, flags := range []string{fmt.Sprintf("ignore-size,pause-after=%d", pauseAfter), "ignore-size,no-output"} {
		p, err := start("-u", "-N", "-S", socket, "-C", "attach-session", "-E", "-f", flags, "-t", session)
		if err != nil {
			c.close()
			return nil, err
		}
		c.programs = append(c.programs, p)
	}
	first, second := c.programs[0], c.programs[1]
	go c.read()
	go func() {
		_, _ = io.Copy(io.Discard, second.out)
		first.in.Close() // without the second one the first one must not stay
	}()
	err := errSilent
	select {
	case <-c.attached:
		return c, nil
	case <-c.ended:
		err = c.err
	case <-time.After(answerTime):
	}
	c.close()
	return nil, err
}

var errSilent = errors.New("the tmux server does not answer")

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
// tmux). So a hub does one of the two at a time.
func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	for _, p := range c.programs {
		p.in.Close()
	}
	for i, p := range c.programs {
		if i == 0 { // read may have returned early: the server waits until it has sent all
			go func() { _, _ = io.Copy(io.Discard, p.out) }()
		}
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
	c.write.Lock()
	defer c.write.Unlock()
	_, err := io.WriteString(c.programs[0].in, text)
	return err
}

// read passes on what comes, until the client is detached or in another session.
func (c *client) read() {
	defer close(c.ended)
	out := newLines(c.programs[0].out)
	for c.err == nil {
		var l []byte
		if l, c.err = out.next(); c.err == nil {
			c.err = c.line(l)
		}
	}
}

// line passes a line on to the views that it is about.
func (c *client) line(l []byte) error {
	c.mu.Lock()
	e := c.parser.line(l)
	v := c.views[e.pane]
	stranger, full := false, false
	var err error
	switch e.kind {
	case kindOutput:
		c.mixed = c.mixed || c.asker != nil && c.asker != v
		if stranger = v == nil; !stranger {
			full = v.add(e)
		}
	case kindPause:
		if v != nil {
			v.add(e)
		}
	case kindLayout, kindWindow:
		e.data = []byte(string(e.data))
		for _, v := range c.views {
			v.add(e)
		}
	case kindReply, kindFailed:
		e.mixed = c.mixed
		if c.asker != nil {
			c.asker.add(e)
			c.asker = nil
			<-c.asking
		}
	case kindSession:
		if id, _, _ := strings.Cut(string(e.data), " "); id != c.session {
			err = errElsewhere
		} else {
			c.setAttachedLocked()
		}
	case kindExit:
		err = io.EOF
	}
	c.mu.Unlock()
	if err == nil && full {
		err = c.send(pauseCommand(e.pane) + "\n")
	}
	if err == nil && stranger {
		err = c.hush(e.pane)
	}
	return err
}

var errElsewhere = errors.New("the client was switched to another session")

func (c *client) setAttachedLocked() {
	select {
	case <-c.attached:
	default:
		close(c.attached)
	}
}

// hush pauses a pane that nobody reads: tmux then reads it, but keeps nothing of it for
// this client. Such a pane is never turned off: without another client, tmux then does
// not read it, and its program stands still.
func (c *client) hush(pane string) error {
	c.write.Lock()
	defer c.write.Unlock()
	c.mu.Lock()
	read := c.views[pane] != nil // its questions come later than this command would
	c.mu.Unlock()
	if read {
		return nil
	}
	_, err := io.WriteString(c.programs[0].in, pauseCommand(pane)+"\n")
	return err
}

func pauseCommand(pane string) string    { return "refresh-client -A '" + pane + ":pause'" }
func continueCommand(pane string) string { return "refresh-client -A '" + pane + ":continue'" }

// IsTmuxPane reports whether a text is the id of a pane of tmux, such as %3, and no more:
// it is safe in a command.
func IsTmuxPane(id string) bool {
	digits, ok := strings.CutPrefix(id, "%")
	return ok && digits != "" && len(digits) < 11 && strings.Trim(digits, "0123456789") == ""
}
