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

// publish is the only writer of the connection: control frames first, then output as far as the daemon's window allows. After a last frame
// it closes the connection. When the daemon has closed it, that is left to the reader, for which there may be something yet.
func (s *session) publish() {
	var small [smallFrame]byte
	rested := time.NewTimer(0)
	defer rested.Stop()
	for {
		control, n, rest, closing := s.due()
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
			var over <-chan time.Time
			if rest > 0 {
				rested.Reset(rest)
				over = rested.C
			}
			select {
			case <-s.wake:
			case <-over:
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

// due returns the frames to be written now: control frames, or n bytes of output. If output is held for more, rest is how long.
func (s *session) due() (control [][]byte, n int, rest time.Duration, closing bool) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if len(s.control) > 0 {
		control, s.control = s.control, nil
		return control, 0, 0, false
	}
	if s.closing || !s.streaming {
		return nil, 0, 0, s.closing
	}
	n, rest = s.dueBytesLocked()
	s.resting = rest > 0
	return nil, n, rest, false
}

// grownLocked wakes publish if the log's growth is a reason for it.
func (s *session) grownLocked() {
	if n, rest := s.dueBytesLocked(); n > 0 || rest > 0 && !s.resting {
		s.poke()
	}
}

// dueBytesLocked decides how much output is sent now. Acknowledgements are the clock; only after a burst that none of them holds back there
// is a rest.
func (s *session) dueBytesLocked() (int, time.Duration) {
	log := s.h.log
	underway := s.next - s.taken
	if s.next < log.Start() {
		if underway > 0 {
			return 0, 0 // the gap comes when all before it was taken
		}
		s.next = log.Start()
		s.taken = s.next
	}
	n := min(log.End()-s.next, s.window-underway, maxData)
	switch {
	case n <= 0:
		return 0, 0
	case n >= fullEnough:
	case underway > fewUnderway:
		return 0, 0
	case s.burst > fewUnderway:
		if rest := pause - time.Since(s.sentAt); rest > 0 {
			return 0, rest
		}
	}
	return int(n), 0
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
	now := time.Now()
	if now.Sub(s.sentAt) >= pause {
		s.burst = 0
	}
	s.burst, s.sentAt = s.burst+int64(n), now
	s.h.mu.Unlock()
	if n == 0 {
		return nil // overtaken since: due finds the gap
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
