package holder

import (
	"slices"
	"sync"
	"time"
)

// Spare is a process that waits to become the next holder, for a person who waits for a
// terminal: the start of a process of this program is a fifth of the time until a shell's
// prompt. An agent's holder is never one, since it needs the agent's mark in its
// environment. A nil or zero Spare has no process. It is safe for concurrent use.
type Spare struct {
	mu     sync.Mutex
	begun  *begun
	timer  *time.Timer // ends begun
	closed bool
}

// spareTime is how long a process waits: people who open a window open another soon.
const spareTime = time.Minute

// Make starts the process, unless one waits. It ends after a minute, or with this
// process.
func (s *Spare) Make(o Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun != nil || s.closed {
		return nil
	}
	b, err := begin(o.Path, append(slices.Clip(o.Argv), "spare"), Spec{}.environ())
	if err != nil {
		return err
	}
	s.begun = b
	s.timer = time.AfterFunc(spareTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.begun == b {
			s.dropLocked()
		}
	})
	return nil
}

// take returns the process, nil if none waits.
func (s *Spare) take() *begun {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.begun
	if b == nil {
		return nil
	}
	s.timer.Stop()
	s.begun = nil
	return b
}

// Close ends the process. No other is started.
func (s *Spare) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.begun != nil {
		s.timer.Stop()
		s.dropLocked()
	}
}

func (s *Spare) dropLocked() {
	s.begun.drop()
	s.begun = nil
}

// drop ends a process that is not needed.
func (b *begun) drop() {
	b.spec.Close()
	b.status.Close()
	go func() { _, _ = b.process.Wait() }() // ends with the process, which finds no message
}
