package holder

import (
	"context"
	"errors"
	"time"

	"tether/platform/proc"
	"tether/platform/pty"
)

var (
	errReplaced = errors.New("another daemon has taken over")
	errBusy     = errors.New("too many requests at a time")
)

// handle carries out one frame. It does not block; an error ends the connection. p is valid until it returns.
func (s *session) handle(k kind, p []byte) error {
	f := fields{b: p}
	switch k {
	case kindStream:
		return s.stream(f.offset(), int64(f.u32()), f.err)
	case kindTaken:
		off, rest := f.offset(), time.Duration(0)
		if len(f.b) > 0 {
			rest = time.Duration(f.u32()) * time.Microsecond
		}
		return s.took(off, min(rest, restMax), f.err)
	}
	switch {
	case k == kindCancel:
		return s.cancel(f.u32(), f.err)
	case k == kindKeep && s.features&featureKeep != 0:
		return s.keep(f.offset(), f.err)
	case k == kindUntil && s.features&featureUntil != 0:
		return s.paceUntil(f.offset(), f.err)
	case k == kindScreen && s.features&featureScreen != 0:
		return s.screen(&f)
	case k == kindKeep, k == kindUntil, k == kindScreen, k == kindSignal && s.features&featureSignal == 0, k == kindReading && s.features&featureReading == 0,
		k == kindFeed && s.features&featureFeed == 0:
		return errFrame
	}
	request := f.u32()
	if f.bad {
		return errFrame
	}
	if s.replaced() {
		s.reply(request, errReplaced) // most likely not sent any more
		return nil
	}
	switch k {
	case kindInput:
		return s.input(request, f.rest(maxInput), f.err)
	case kindKill:
		return s.kill(request, time.Duration(f.u32())*time.Millisecond, f.err)
	case kindFeed:
		return s.feed(request, &f)
	case kindReading:
		s.reading(request)
		return nil
	case kindForget:
		s.forget(request)
		return nil
	}
	return s.change(k, request, &f)
}

// change handles the requests that only set something.
func (s *session) change(k kind, request uint32, f *fields) error {
	var err error
	switch k {
	case kindSignal:
		name := string(f.rest(maxSignal))
		if !f.bad {
			err = s.h.signal(name)
		}
	case kindResize:
		size := pty.Size{Cols: f.u16(), Rows: f.u16()}
		if !f.bad {
			err = s.h.resize(size)
		}
	case kindSetMeta:
		meta := append([]byte(nil), f.rest(maxBlob)...)
		if !f.bad {
			s.h.setMeta(meta)
		}
	case kindCheckpoint:
		c, bad := decodeCheckpoint(f, maxBlob)
		if bad == nil {
			err = s.h.checkpoint(c)
		}
	}
	if f.bad {
		return errFrame
	}
	s.reply(request, err)
	return nil
}

func (s *session) replaced() bool {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.session != s
}

// stream begins to send output.
func (s *session) stream(off, window int64, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.streaming || off > h.log.End() {
		return errFrame
	}
	if h.session != s {
		return nil
	}
	s.streaming = true
	s.window = min(max(window, minWindow), maxWindow)
	s.next = max(off, h.log.Start())
	s.taken = s.next
	h.movedLocked()
	s.poke()
	return nil
}

// took records that the daemon has taken output up to off, which moves the floor, and how long the pump rests in a flood.
func (s *session) took(off int64, rest time.Duration, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.streaming || off > s.next {
		return errFrame
	}
	s.rest = rest
	if off <= s.taken || h.session != s {
		return nil
	}
	s.taken = off
	h.free = false
	h.movedLocked()
	s.poke()
	return nil
}

// keep records the offset from which on the daemon needs output although it has taken it: the other bound of the floor.
func (s *session) keep(off int64, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == s && off != h.keep {
		h.keep, h.free = off, false
		h.movedLocked()
	}
	return nil
}

// screen keeps a screen, if its offset is in the log.
func (s *session) screen(f *fields) error {
	c, err := decodeCheckpoint(f, maxShown)
	if err != nil {
		return err
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == s && c.Off >= h.log.Start() && c.Off <= h.log.End() {
		h.screens.put(c)
	}
	return nil
}

// paceUntil records the offset beyond which the child waits a little. If that is half a log ahead, the readers have caught up.
func (s *session) paceUntil(off int64, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	s.until = off
	if off-h.log.End() >= int64(h.log.Limit()/2) {
		s.spent = false
	}
	h.lookLocked()
	return nil
}

// input queues bytes for writeInput. A daemon sends one piece at a time, so only a misbehaving one finds the queue full.
func (s *session) input(request uint32, p []byte, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	in := input{s, request, append([]byte(nil), p...)}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	select {
	case waiting := <-s.h.inputs:
		if waiting.from == s {
			s.h.inputs <- waiting // does not block: senders hold h.mu, so the slot is still free
			return errBusy
		}
		// It came from a daemon that this one has replaced and whose end was not noticed yet. No byte of it was written.
	default:
	}
	s.h.inputs <- in
	return nil
}

// reading replies which of the child's processes wait for the keyboard. The daemon cannot always look itself: the kernel may show that only
// to a program's ancestors.
func (s *session) reading(request uint32) {
	r := reply{request, statusOK, string(encodeReading(proc.ReadsKeyboard(s.h.child.Pid())))}
	s.h.mu.Lock()
	s.controlLocked(r.frame())
	s.h.mu.Unlock()
}

// kill ends the child's tree, on a goroutine of its own that a lost connection does not stop.
func (s *session) kill(request uint32, grace time.Duration, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(s.kills) >= maxKills || s.kills[request] != nil {
		return errBusy
	}
	ctx, cancel := context.WithCancel(h.ctx)
	s.kills[request] = cancel
	h.killed = true
	h.movedLocked()
	h.tasks.Go(func() {
		err := h.child.Kill(ctx, grace)
		cancel()
		h.mu.Lock()
		delete(s.kills, request)
		h.mu.Unlock()
		s.reply(request, err)
	})
	return nil
}

// cancel ends the grace of a kill. It does nothing for a kill that has ended.
func (s *session) cancel(request uint32, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if cancel := s.kills[request]; cancel != nil {
		cancel()
	}
	return nil
}

// forget ends the holder. The reply is its last message.
func (s *session) forget(request uint32) {
	err := s.h.forget()
	switch {
	case err != nil:
		s.reply(request, err)
		return
	case s.h.subreaper && s.h.left():
		s.h.mu.Lock()
		s.controlLocked(reply{request, statusOK, stays}.frame())
		s.h.mu.Unlock()
	default:
		s.reply(request, nil)
	}
	s.h.finish()
}
