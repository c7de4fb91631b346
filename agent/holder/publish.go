package holder

import (
	"errors"
	"os"
	"sync"
	"time"
)

// smallFrame is the size of a frame for which no pooled buffer is taken.
const smallFrame = 512

var dataBuffers = sync.Pool{New: func() any { return new([dataHead + maxData]byte) }}

// publish is the only writer of the connection: it writes control frames first, then
// output as far as the daemon's window allows. It closes the connection after a last
// frame, and when the daemon has not read that in time. After any other failed write it
// only returns: frames that the daemon sent earlier may still have to be read, and serve
// closes the connection after them.
func (s *session) publish() {
	var small [smallFrame]byte
	paused := time.NewTimer(0)
	defer paused.Stop()
	for {
		control, n, pause, closing := s.due()
		var err error
		switch {
		case len(control) > 0:
			err = s.writeControl(control)
		case closing:
			s.conn.Close()
			return
		case n > 0:
			err = s.writeData(small[:], n)
		default:
			var again <-chan time.Time
			if pause > 0 {
				paused.Reset(pause)
				again = paused.C
			}
			select {
			case <-s.wake:
			case <-again:
			case <-s.gone:
				return
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.conn.Close()
		}
		if err != nil {
			return
		}
	}
}

// due returns the control frames to write now, or the number n of bytes of output. If
// there is too little output for a frame, n is 0, and pause is the time after which that
// output is sent anyway. closing reports that the connection is to be closed instead.
func (s *session) due() (control [][]byte, n int, pause time.Duration, closing bool) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if len(s.control) > 0 {
		control, s.control = s.control, nil
		return control, 0, 0, false
	}
	if s.closing || !s.streaming {
		return nil, 0, 0, s.closing
	}
	n, pause = s.dueBytesLocked()
	s.pausing = pause > 0
	return nil, n, pause, false
}

// grownLocked wakes publish if the log has grown enough for it to send output, or to wait
// for a pause.
func (s *session) grownLocked() {
	if n, pause := s.dueBytesLocked(); n > 0 || pause > 0 && !s.pausing {
		s.poke()
	}
}

// dueBytesLocked returns how many bytes of output are to be sent now. If n is 0 and pause
// is not, output is to be sent after the pause.
func (s *session) dueBytesLocked() (n int, pause time.Duration) {
	log := s.h.log
	inflight := s.next - s.taken
	if s.next < log.Start() {
		if inflight > 0 {
			return 0, 0 // the daemon is told of the gap once it has taken everything before it
		}
		s.next = log.Start()
		s.taken = s.next
	}
	pending := min(log.End()-s.next, s.window-inflight, maxData)
	if pending <= 0 {
		return 0, 0
	}
	if least, pause := s.gather.Least(inflight, frame); pending < least {
		return 0, pause
	}
	return int(pending), 0
}

// writeData sends up to n bytes of output as one frame with one write.
func (s *session) writeData(small []byte, n int) error {
	buf := small
	if dataHead+n > len(small) {
		pooled := dataBuffers.Get().(*[dataHead + maxData]byte)
		defer dataBuffers.Put(pooled)
		buf = pooled[:]
	}
	s.h.mu.Lock()
	off := s.next
	n = s.h.log.ReadAt(buf[dataHead:dataHead+n], off)
	s.next += int64(n)
	s.gather.Sent(n, time.Now())
	s.h.mu.Unlock()
	if n == 0 {
		return nil // the log has dropped these bytes meanwhile; due finds the gap
	}
	putDataHead(buf, off, n)
	_, err := s.conn.Write(buf[:dataHead+n])
	return err
}

// writeControl sends frames with as few writes as their size allows.
func (s *session) writeControl(control [][]byte) error {
	var joined []byte
	for _, frame := range control {
		joined = append(joined, frame...)
	}
	_, err := s.conn.Write(joined)
	return err
}
