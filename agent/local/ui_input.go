package local

import (
	"context"
	"errors"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"tether/agent/localapi"
	"tether/agent/term"
)

// read reads messages until the connection ends. It writes input and sizes to the
// terminal itself and passes the rest to run. It reads without a context, because the end
// of a context would close the connection before the close message; serve closes the
// connection.
func (c *client) read(ctx context.Context) {
	for pace := rate.NewLimiter(messageRate, messageBurst); pace.Wait(ctx) == nil; {
		kind, data, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		a := c.accept(ctx, kind, data)
		if a.Type == "" && a.err == nil {
			continue
		}
		select {
		case c.asked <- a:
		case <-ctx.Done():
			return
		}
	}
}

// accept carries out input and resize messages, and returns other messages for run. If
// the result has neither a type nor an error, nothing is left to do.
func (c *client) accept(ctx context.Context, kind websocket.MessageType, data []byte) (left ask) {
	if c.screen != nil {
		return c.screen.accept(ctx, kind, data)
	}
	if kind != websocket.MessageText {
		return ask{err: localapi.BadRequest("messages are JSON in text frames")}
	}
	r, err := parse(data)
	if err != nil {
		return ask{request: r, err: err}
	}
	switch r.Type {
	case ptyInput:
		err = c.input(ctx, r)
	case ptyResize:
		err = c.resize(r)
	case ptyDetach:
		c.unsize(r.ID) // here, so that a later size counts
		return ask{request: r}
	default:
		return ask{request: r}
	}
	if err == nil {
		return ask{}
	}
	return ask{request: request{ID: r.ID}, err: err}
}

func (c *client) input(ctx context.Context, r request) error {
	h, err := c.persons(r.ID)
	if err == nil {
		err = c.hands.mayType(h.Info())
	}
	if err != nil {
		return err
	}
	err = h.WriteWithin(ctx, inputTimeout, []byte(*r.Data))
	if errors.Is(err, context.DeadlineExceeded) {
		return &localapi.Error{Code: localapi.CodeTimeout, Message: "the program does not read its input; the last keys were lost"}
	}
	return err
}

func (c *client) resize(r request) error {
	h, err := c.persons(r.ID)
	if err != nil {
		return err
	}
	if !c.sizes(r.ID, h) {
		return nil
	}
	err = c.server.sizes.want(h, c, term.Size{Cols: *r.Cols, Rows: *r.Rows})
	if !c.sizes(r.ID, h) { // the client has gone meanwhile
		c.server.sizes.leave(h, c)
	}
	return err
}

// sizes records that the window has a size for a terminal. It returns false if the client
// has gone.
func (c *client) sizes(id string, h term.Handle) bool {
	c.sizing.Lock()
	defer c.sizing.Unlock()
	if c.sized != nil {
		c.sized[id] = h
	}
	return c.sized != nil
}

// unsize ends the size of the window for a terminal, or for all if the client has gone
// and id is "".
func (c *client) unsize(id string) {
	c.sizing.Lock()
	ended := c.sized
	if id == "" {
		c.sized = nil
	} else if h, ok := c.sized[id]; ok {
		ended = map[string]term.Handle{id: h}
		delete(c.sized, id)
	} else {
		ended = nil
	}
	c.sizing.Unlock()
	for _, h := range ended {
		c.server.sizes.leave(h, c)
	}
}

// persons returns the terminal if the person owns it. This protocol accepts input and
// sizes only for the person's terminals, so that a user interface that shows an agent's
// terminal does not disturb it. The Handle makes all other checks.
func (c *client) persons(id string) (term.Handle, error) {
	h, err := c.access.Terminal(term.ID(id))
	if err != nil {
		return h, err
	}
	if h.Info().Owner != term.User {
		return h, &localapi.Error{Code: localapi.CodeDenied, Message: "this is an agent's terminal; it cannot be typed into or resized here", Hint: "promote it first"}
	}
	return h, nil
}
