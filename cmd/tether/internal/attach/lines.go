package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"tether/platform/pty"
	"tether/platform/tty"
)

// tailWait is how long a script's incomplete line waits for its rest. Then it is typed,
// since it may be an answer to a prompt.
const tailWait = 20 * time.Millisecond

// lines types the input of a script until it ends. It keeps lines together, so that the
// daemon can refuse one that the terminal would cut before the terminal has a part of it.
func (s *Session) lines(ctx context.Context) {
	pieces, ended := make(chan []byte), make(chan error, 1)
	go s.read(ctx, pieces, ended)
	var tail []byte // an incomplete line
	last := byte('\n')
	for {
		var pause <-chan time.Time
		if len(tail) > 0 {
			pause = time.After(tailWait)
		}
		var err error
		upTo := 0 // in tail
		select {
		case piece := <-pieces:
			tail = append(tail, piece...)
			if upTo = bytes.LastIndexByte(tail, '\n') + 1; len(tail)-upTo > pty.MaxLine {
				upTo = len(tail) // not to be kept together
			}
		case err = <-ended:
			upTo = len(tail)
		case <-pause:
			upTo = len(tail)
		case <-ctx.Done():
			return
		}
		if upTo > 0 {
			last = tail[upTo-1]
			if s.att.Write(ctx, tail[:upTo]) != nil {
				return
			}
			tail = append(tail[:0], tail[upTo:]...)
		}
		if errors.Is(err, io.EOF) && s.opts.Owns {
			_ = s.att.Write(ctx, tty.EndOfInput(last == '\n' || last == '\r')) // the child may be gone
		}
		if err != nil {
			return
		}
	}
}

// read reads the input until it ends. It may end only with the process, because a read
// may not be cancelled.
func (s *Session) read(ctx context.Context, pieces chan<- []byte, ended chan<- error) {
	keys := tty.Keys(s.opts.In)
	for {
		buf := make([]byte, 16<<10)
		n, err := keys.Read(buf)
		if n > 0 {
			select {
			case pieces <- buf[:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			ended <- err // has room
			return
		}
	}
}
