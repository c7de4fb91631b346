package local

import (
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"

	"tether/agent/term"
)

// read takes what the client sends until it is gone. Input and sizes go to the terminal from here, the rest to run. It reads without a
// context, since the end of that would close the connection before the last word; serve closes it.
func (c *ptyClient) read(ctx context.Context) {
	pace := pace{tokens: messageBurst, at: time.Now()}
	for pace.take(ctx) {
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

// accept does what a message asks as far as it can be done here, and returns
// what is left for run: nothing if the result has neither a type nor an error.
func (c *ptyClient) accept(ctx context.Context, kind websocket.MessageType, data []byte) (left ptyAsk) {
	if kind != websocket.MessageText {
		return ptyAsk{err: badMessage("messages are JSON in text frames")}
	}
	r, err := parsePty(data)
	if err != nil {
		return ptyAsk{ptyRequest: r, err: err}
	}
	switch r.Type {
	case ptyInput:
		err = c.input(ctx, r)
	case ptyResize:
		err = c.resize(r)
	default:
		return ptyAsk{ptyRequest: r}
	}
	if err == nil {
		return ptyAsk{}
	}
	return ptyAsk{ptyRequest: ptyRequest{ID: r.ID}, err: err}
}

func (c *ptyClient) input(ctx context.Context, r ptyRequest) error {
	h, err := c.persons(r.ID)
	if err == nil {
		err = c.hands.mayType(h.Info())
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, inputPatience)
	defer cancel()
	err = h.Write(ctx, []byte(*r.Data))
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: CodeTimeout, Message: "the program does not read its input; the last keys were lost"}
	}
	return err
}

func (c *ptyClient) resize(r ptyRequest) error {
	h, err := c.persons(r.ID)
	if err != nil {
		return err
	}
	return c.server.sizes.settle(h, term.Size{Cols: *r.Cols, Rows: *r.Rows})
}

// persons returns the terminal if it is the person's. This protocol takes input and sizes for those alone: an interface that shows what an
// agent runs must not disturb it. Who else may not type is decided by the Handle.
func (c *ptyClient) persons(id string) (term.Handle, error) {
	h, err := c.access.Terminal(term.ID(id))
	if err != nil {
		return h, err
	}
	if h.Info().Owner != term.User {
		return h, &Error{Code: CodeDenied, Message: "this is an agent's terminal; it cannot be typed into or resized here", Hint: "promote it first"}
	}
	return h, nil
}

// pace lets messageBurst messages pass at once and messageRate a second.
type pace struct {
	tokens float64
	at     time.Time
}

// take waits for the next message's turn; it is false when ctx has ended.
func (p *pace) take(ctx context.Context) bool {
	now := time.Now()
	p.tokens = min(p.tokens+now.Sub(p.at).Seconds()*messageRate, messageBurst)
	p.at = now
	p.tokens--
	if p.tokens >= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(time.Duration(-p.tokens / messageRate * float64(time.Second))):
		return true
	case <-ctx.Done():
		return false
	}
}
