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

// feature returns the feature without which nobody sends frames of this kind, 0 if there
// is none.
func (k kind) feature() uint64 {
	switch k {
	case kindKeep:
		return featureKeep
	case kindUntil:
		return featureUntil
	case kindScreen:
		return featureScreen
	case kindSignal:
		return featureSignal
	case kindReading:
		return featureReading
	case kindFeed:
		return featureFeed
	case kindDrop:
		return featureDrop
	default:
		return 0
	}
}

// handle carries out one frame. It does not block; an error ends the connection. p is
// valid until it returns.
func (s *session) handle(k kind, p []byte) error {
	if need := k.feature(); s.features&need != need {
		return errFrame
	}
	f := fields{b: p}
	switch k {
	case kindStream, kindTaken, kindKeep, kindUntil, kindCancel:
		return s.note(k, &f)
	case kindScreen:
		return s.screen(&f)
	}
	request := f.u32()
	if f.bad {
		return errFrame
	}
	if s.replaced() {
		s.reply(request, errReplaced) // most likely not sent any more
		return nil
	}
	return s.answer(k, request, &f)
}

// note handles what the daemon says without waiting for an answer.
func (s *session) note(k kind, f *fields) error {
	var off int64
	var n uint32
	if k != kindCancel {
		off = f.offset()
	}
	if k == kindStream || k == kindCancel || k == kindTaken && len(f.b) > 0 {
		n = f.u32()
	}
	if f.bad {
		return errFrame
	}
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	switch k {
	case kindStream:
		return s.streamLocked(off, int64(n))
	case kindTaken:
		return s.tookLocked(off, min(time.Duration(n)*time.Microsecond, restMax))
	case kindKeep: // the offset from which on the daemon needs output although it has taken it: the other bound of the floor
		if h.session == s && off != h.keep {
			h.keep, h.free = off, false
			h.movedLocked()
		}
	case kindUntil: // the offset beyond which the child waits a little; half a log ahead, the readers have caught up
		s.until = off
		if off-h.log.End() >= int64(h.log.Limit()/2) {
			s.spent = false
		}
		h.lookLocked()
	case kindCancel: // the grace of a kill; nothing if it has ended
		if cancel := s.kills[n]; cancel != nil {
			cancel()
		}
	}
	return nil
}

// answer handles a request and answers it, now or later.
func (s *session) answer(k kind, request uint32, f *fields) error {
	var err error
	switch k {
	case kindInput:
		if p := append([]byte(nil), f.rest(maxInput)...); !f.bad {
			return s.input(request, p)
		}
	case kindKill:
		if grace := time.Duration(f.u32()) * time.Millisecond; !f.bad {
			return s.kill(request, grace)
		}
	case kindFeed:
		return s.feed(request, f)
	case kindReading:
		s.reading(request)
		return nil
	case kindForget:
		s.forget(request)
		return nil
	case kindSignal:
		if name := string(f.rest(maxSignal)); !f.bad {
			err = s.h.signal(name)
		}
	case kindDrop:
		if off := f.offset(); !f.bad {
			s.dropBefore(off)
		}
	case kindResize:
		if size := (pty.Size{Cols: f.u16(), Rows: f.u16()}); !f.bad {
			err = s.h.resize(size)
		}
	case kindSetMeta:
		if meta := append([]byte(nil), f.rest(maxBlob)...); !f.bad {
			s.h.setMeta(meta)
		}
	case kindCheckpoint:
		if c, bad := decodeCheckpoint(f, maxBlob); bad == nil {
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

// streamLocked begins to send output.
func (s *session) streamLocked(off, window int64) error {
	h := s.h
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

// tookLocked records that the daemon has taken output up to off, which moves the floor,
// and how long the pump rests in a flood.
func (s *session) tookLocked(off int64, rest time.Duration) error {
	h := s.h
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

// dropBefore drops the output before an offset that the daemon has read. The message that
// it has taken that may still be on the way.
func (s *session) dropBefore(off int64) {
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == s {
		off = min(off, s.next)
		s.taken = max(s.taken, off)
		h.log.Trim(off)
		h.notes.trim(h.log.Start())
		h.screens.forget(h.log.Start())
		h.movedLocked()
	}
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

// input queues bytes for writeInput. A daemon sends one piece at a time, so only a
// misbehaving one finds the queue full.
func (s *session) input(request uint32, p []byte) error {
	in := input{s, request, p}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	select {
	case waiting := <-s.h.inputs:
		if waiting.from == s {
			s.h.inputs <- waiting // does not block: senders hold h.mu, so the slot is still free
			return errBusy
		}
		// It came from a daemon that this one has replaced and whose end was not noticed
		// yet. No byte of it was written.
	default:
	}
	s.h.inputs <- in
	return nil
}

// reading replies which of the child's processes wait for the keyboard. The daemon cannot
// always look itself: the kernel may show that only to a program's ancestors.
func (s *session) reading(request uint32) {
	r := reply{request, statusOK, string(encodeReading(proc.ReadsKeyboard(s.h.child.Pid())))}
	s.h.mu.Lock()
	s.controlLocked(r.frame())
	s.h.mu.Unlock()
}

// kill ends the child's tree, on a goroutine of its own that a lost connection does not
// stop.
func (s *session) kill(request uint32, grace time.Duration) error {
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
