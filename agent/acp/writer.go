package acp

import (
	"context"
	"io"
	"sync"
)

// writer writes whole lines for several goroutines. The next writer waits for the one slot; its holder may block while the other side does
// not read.
type writer struct {
	w      io.Writer
	slot   chan struct{} // 1: held while a line is being written
	closed chan struct{} // closed with the slot held: nobody else writes any more
	once   sync.Once
}

func newWriter(w io.Writer) *writer {
	return &writer{w: w, slot: make(chan struct{}, 1), closed: make(chan struct{})}
}

// send writes the line that make returns, unless the writer was closed or ctx ended before its turn came. make is called when it has come,
// so that a line that waits takes no memory and is not old; it may return nil for none.
func (w *writer) send(ctx context.Context, make func() []byte) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if line := make(); line != nil {
		return w.write(line)
	}
	return nil
}

func (w *writer) lock(ctx context.Context) error {
	select {
	case w.slot <- struct{}{}:
	case <-w.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-w.closed:
		w.unlock()
		return io.ErrClosedPipe
	default:
		return nil
	}
}

func (w *writer) unlock() { <-w.slot }

// write needs the slot.
func (w *writer) write(p []byte) error {
	_, err := w.w.Write(p)
	return err
}

// close permits no more writes; it waits for the running one.
func (w *writer) close() {
	w.slot <- struct{}{}
	w.closeHeld()
}

// closeHeld is close for the slot's holder, and gives the slot back.
func (w *writer) closeHeld() {
	w.once.Do(func() { close(w.closed) })
	w.unlock()
}
