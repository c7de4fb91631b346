package holder

import (
	"errors"
	"os"
	"sync"
)

// smallFrame is the size of a frame for which no pooled buffer is taken.
const smallFrame = 512

var dataBuffers = sync.Pool{New: func() any { return new([dataHead + maxData]byte) }}

// publish is the only writer of the connection: control frames first, then
// output as far as the daemon's window allows. After a last frame it closes
// the connection. When the daemon has closed it, that is left to the reader,
// for which there may be something yet.
func (s *session) publish() {
	var small [smallFrame]byte
	for {
		control, n, closing := s.due()
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
			select {
			case <-s.wake:
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

// due returns what is to be written now: control frames, or that n bytes of
// output are.
func (s *session) due() (control [][]byte, n int, closing bool) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if len(s.control) > 0 {
		control, s.control = s.control, nil
		return control, 0, false
	}
	if s.closing || !s.streaming {
		return nil, 0, s.closing
	}
	return nil, s.dueBytesLocked(), false
}

// dueBytesLocked decides whether output is sent now. Acknowledgements are the
// clock: there is no timer.
func (s *session) dueBytesLocked() int {
	log := s.h.log
	underway := s.next - s.taken
	if s.next < log.Start() {
		if underway > 0 {
			return 0 // the gap comes when all before it was taken
		}
		s.next = log.Start()
		s.taken = s.next
	}
	n := min(log.End()-s.next, s.window-underway, maxData)
	if underway > fewUnderway && n < fullEnough {
		return 0
	}
	return int(max(n, 0))
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
