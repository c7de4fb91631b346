package acp

import (
	"context"
	"io"
	"sync"
)

// writer writes whole lines for several goroutines. A goroutine waits for the one slot
// before it writes. The goroutine that holds the slot blocks while the other side does
// not read.
type writer struct {
	w      io.Writer
	slot   chan struct{} // 1: held while a line is being written
	closed chan struct{} // closed by the holder of the slot; later calls of lock and send fail
	once   sync.Once
}

func newWriter(w io.Writer) *writer {
	return &writer{w: w, slot: make(chan struct{}, 1), closed: make(chan struct{})}
}

// send writes the line that make returns. It fails if the writer is closed or ctx ends
// before send gets the slot. It calls make while it holds the slot, so that a waiting
// line takes no memory and is up to date. make returns nil to write nothing.
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

// lock takes the slot. It fails if the writer is closed or ctx ends first.
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

// write writes p. The caller holds the slot.
func (w *writer) write(p []byte) error {
	_, err := w.w.Write(p)
	return err
}

// close ends the writer. It waits until the current write has returned.
func (w *writer) close() {
	w.slot <- struct{}{}
	w.closeHeld()
}

// closeHeld is close for the holder of the slot. It releases the slot.
func (w *writer) closeHeld() {
	w.once.Do(func() { close(w.closed) })
	w.unlock()
}
