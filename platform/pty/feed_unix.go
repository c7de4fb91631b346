//go:build linux || darwin

package pty

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// CanFeed reports whether this system supports Command.Feed.
const CanFeed = true

// feed is the pipe that a program has as its standard input. It counts the bytes that it
// has accepted, so that the writer can be replaced by another one, which continues at
// that count. It holds at most one piece besides the contents of the pipe.
type feed struct {
	w    *os.File
	turn chan struct{} // 1 slot, held while a piece is written

	mu      sync.Mutex
	next    int64 // offset of the next byte to accept
	writing bool  // a piece is being written
	ending  bool  // nothing follows the piece that is being written
	closed  bool
	timer   *time.Timer // ends the input, see Unfed; nil if there is a writer
}

// newFeed returns the feed and the end of its pipe that the program reads.
func newFeed() (*feed, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &feed{w: w, turn: make(chan struct{}, 1)}, r, nil
}

// Feed gives the program more of its standard input: p begins at offset off of it, and
// with last nothing follows. Bytes that were accepted before are skipped. Feed blocks
// while the program does not read, and returns how many bytes were accepted in all. If
// ctx ends before p has its turn, p is not accepted. Without bytes, it only returns that
// count. Errors: ErrNoFeed, os.ErrClosed once the input has ended or the program has
// closed it, ctx's, and one for bytes that are missing before off.
func (p *PTY) Feed(ctx context.Context, off int64, b []byte, last bool) (next int64, err error) {
	if p.feed == nil {
		return 0, ErrNoFeed
	}
	return p.feed.put(ctx, off, b, last)
}

// Unfed says that the writer of the program's standard input is gone: it ends after
// FeedWait, unless Feed is called before. Unfed does nothing for a program without a
// feed.
func (p *PTY) Unfed() {
	if p.feed != nil {
		p.feed.within(FeedWait)
	}
}

func (f *feed) put(ctx context.Context, off int64, p []byte, last bool) (next int64, err error) {
	f.attend()
	if len(p) > 0 {
		select {
		case f.turn <- struct{}{}:
			err = f.write(off, p)
			<-f.turn
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if last && err == nil {
		f.end()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && len(p) == 0 && !last && (f.ending || f.closed) {
		err = os.ErrClosed
	}
	return f.next, err
}

// write accepts p and writes it to the pipe. The caller has the turn.
func (f *feed) write(off int64, p []byte) error {
	f.mu.Lock()
	switch {
	case f.ending || f.closed:
		f.mu.Unlock()
		return os.ErrClosed
	case off > f.next:
		f.mu.Unlock()
		return fmt.Errorf("input at %d: the input before it ends at %d", off, f.next)
	}
	p = p[min(f.next-off, int64(len(p))):]
	f.next += int64(len(p))
	f.writing = true
	f.mu.Unlock()
	_, err := f.w.Write(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing = false
	if err != nil || f.ending {
		f.closeLocked()
	}
	if err != nil { // nobody reads any more
		return os.ErrClosed
	}
	return nil
}

// end ends the input after the bytes that were accepted.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
	if !f.writing {
		f.closeLocked()
	}
}

// close ends the input at once, and a write that blocks.
func (f *feed) close() {
	f.attend()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeLocked()
}

func (f *feed) closeLocked() {
	if !f.closed {
		f.closed = true
		f.w.Close()
	}
}

func (f *feed) within(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil && !f.closed {
		f.timer = time.AfterFunc(d, f.end)
	}
}

// attend stops the timer of within.
func (f *feed) attend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}
