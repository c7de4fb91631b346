package local

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
)

// feedEnd bounds the request that ends a standard input whose writer is gone.
const feedEnd = 5 * time.Second

// feed takes a command's standard input from the client that has started it. When the
// client is gone, the input ends; when the daemon ends before, the client continues at
// the next one.
func (s *Server) feed(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	hands := hands{server: s, request: r}
	if err := hands.mayType(h.Info()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	to, next, err := h.Feeder(ctx)
	if errors.Is(err, os.ErrClosed) {
		next, err = 0, nil
	}
	if err != nil {
		return err
	}
	if to != nil {
		defer to.Close()
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	conn, err := upgrade(w, r)
	if err != nil {
		return nil // upgrade has answered
	}
	conn.SetReadLimit(localapi.MaxFrame)
	defer conn.CloseNow()
	defer context.AfterFunc(ctx, func() { conn.CloseNow() })()
	f := &feeding{conn: conn, to: to, terminal: h, judge: agentTerminals{server: s, access: s.access(r), door: policy.DoorCLI}}
	if to == nil {
		f.say(localapi.Control{Type: localapi.ControlFed, Closed: true})
		return nil
	}
	f.run(ctx, next)
	if s.draining.Err() == nil {
		end, cancel := context.WithTimeout(context.Background(), feedEnd)
		defer cancel()
		_ = to.End(end) // on error the child is gone
		f.say(localapi.Control{Type: localapi.ControlFed, Closed: true})
	}
	return nil
}

// feeding is one client that writes one command's standard input.
type feeding struct {
	conn     *websocket.Conn
	to       *term.Feeder
	terminal term.Handle
	judge    agentTerminals
	cut      []byte // the beginning of a character with which the last piece ended
}

// run passes on pieces until the input ends, the client is gone or ctx ends. It tells the
// client after each piece how far the command's input goes, so that the client keeps only
// the rest.
func (f *feeding) run(ctx context.Context, next int64) {
	for f.say(localapi.Control{Type: localapi.ControlFed, Offset: next}) {
		kind, data, err := f.conn.Read(context.Background()) // without ctx, whose end closes the connection
		if err != nil || kind != websocket.MessageBinary || len(data) < localapi.OffsetBytes {
			return
		}
		off, data := int64(binary.BigEndian.Uint64(data)&^(1<<63)), data[localapi.OffsetBytes:]
		if len(data) == 0 {
			return // feed ends the input
		}
		switch next, err = f.write(ctx, off, data); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, os.ErrClosed), errors.Is(err, term.ErrExited):
			return
		case err != nil:
			f.say(localapi.Control{Type: localapi.ControlDropped, Message: err.Error(), Error: errorFor(err)})
			for err = nil; err == nil; { // the client may want to kill the command before it sees an end
				_, _, err = f.conn.Read(context.Background())
			}
			return
		}
	}
}

// write passes on a piece that begins at off. The policy judges an agent's, as it judges
// what the agent types.
func (f *feeding) write(ctx context.Context, off int64, p []byte) (next int64, err error) {
	text := append(f.cut, p...)
	whole := len(text) - cutRune(text)
	f.cut = slices.Clone(text[whole:])
	err = f.judge.judged(ctx, f.terminal, true, text[:whole], func() error {
		for end := off + int64(len(p)); ; {
			if next, err = f.to.Write(ctx, off, p); err != nil || next >= end || next <= off {
				return err
			}
			p, off = p[next-off:], next
		}
	})
	return next, err
}

// cutRune returns how many bytes at the end of p begin a character that is not complete.
func cutRune(p []byte) int {
	for n := 1; n < min(utf8.UTFMax, len(p)+1); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// say sends a message; false means that the client is gone.
func (f *feeding) say(c localapi.Control) bool {
	ctx, cancel := context.WithTimeout(context.Background(), closeMessageTimeout)
	defer cancel()
	return f.conn.Write(ctx, websocket.MessageText, c.Encode()) == nil
}
