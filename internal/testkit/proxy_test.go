package testkit

import (
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit/must"
)

// sink is a server that keeps the bytes and the end of each connection, and first sends
// hello.
type sink struct {
	mu    sync.Mutex
	conns []net.Conn
	got   [][]byte
	ended []error
}

func (s *sink) serve(conn net.Conn) {
	s.mu.Lock()
	n := len(s.got)
	s.conns, s.got, s.ended = append(s.conns, conn), append(s.got, nil), append(s.ended, nil)
	s.mu.Unlock()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return // the proxy's other end tells
	}
	buf := make([]byte, 1000)
	for {
		m, err := conn.Read(buf)
		s.mu.Lock()
		s.got[n] = append(s.got[n], buf[:m]...)
		s.ended[n] = err
		s.mu.Unlock()
		if err != nil {
			conn.Close()
			return
		}
	}
}

// over reports the bytes of the first connection and how it ended.
func (s *sink) over() (got []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		return nil, nil
	}
	return s.got[0], s.ended[0]
}

// tcpSink starts a sink on loopback.
func tcpSink(t *testing.T) (*sink, func() (net.Conn, error)) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &sink{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		wg.Wait()
	})
	return s, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
}

func TestFaultsOverTCP(t *testing.T) {
	const after = 4000 // bytes, with the five of "hello"
	cases := []struct {
		kind FaultKind
		// The findings of each end: the end of the stream, an error, or nothing for a
		// while.
		near, far string
		exact     bool // just the bytes before the fault arrive; otherwise up to the end of that write
	}{
		{NoFault, "silence", "silence", false},
		{CleanClose, "end", "end", false},
		{Reset, "error", "error", false},
		{MidFrame, "error", "error", true},
		{BlackHole, "silence", "silence", false},
		{HalfOpenNear, "silence", "end", false},
		{HalfOpenFar, "end", "silence", false},
	}
	for _, c := range cases {
		t.Run(c.kind.String(), func(t *testing.T) {
			Leaks(t)
			s, dial := tcpSink(t)
			p := NewProxy(t, dial, func(int) Fault { return Fault{Kind: c.kind, After: after} })
			conn := must.Get(net.Dial("tcp", p.Listen(t)))(t)
			defer conn.Close()
			must.Get(io.ReadFull(conn, make([]byte, 5)))(t)
			end := "silence"
			for i := range 5 { // a frame each; the fault is in the fourth
				if _, err := conn.Write(make([]byte, 1100)); err != nil {
					end = named(err)
				}
				within(Patience, func() bool { // so that none is joined with the next
					got, err := s.over()
					return err != nil || len(got) == 1100*(i+1) || p.Struck()[c.kind] == 1
				})
			}
			if end == "silence" { // a system reports a reset once
				end = ending(conn, c.near == "silence")
			}
			if end != c.near && !(c.near == "end" && end == "error") {
				t.Errorf("the near end finds %s, want %s", end, c.near)
			}
			far := func() string { _, err := s.over(); return named(err) }
			if c.far != "silence" {
				Eventually(t, Patience, "the far end is told: "+c.far, func() bool { return far() == c.far || c.far == "end" && far() == "error" })
			} else if far() != "silence" {
				t.Errorf("the far end finds %s", far())
			}
			got, _ := s.over()
			if n := len(got); c.exact && n > after-5 || c.kind != NoFault && n > 4*1100 {
				t.Errorf("%d bytes have passed", n)
			}
			want := map[FaultKind]int{c.kind: 1}
			if c.kind == NoFault {
				want = map[FaultKind]int{}
			}
			if got := p.Struck(); !reflect.DeepEqual(got, want) {
				t.Errorf("the proxy counts %v, want %v", got, want)
			}
		})
	}
}

// ending is the result of a read of conn, within a while that is short if nothing is
// expected.
func ending(conn net.Conn, silent bool) string {
	patience := Patience
	if silent {
		patience = 100 * time.Millisecond
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	_, err := conn.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return named(err)
}

func named(err error) string {
	switch {
	case err == nil:
		return "silence"
	case errors.Is(err, io.EOF):
		return "end"
	}
	return "error"
}

func TestFaultsInABubble(t *testing.T) {
	for kind := range faultKinds {
		synctest.Test(t, func(t *testing.T) {
			s := &sink{}
			p := NewProxy(t, func() (net.Conn, error) {
				ours, theirs := net.Pipe()
				go s.serve(theirs)
				return ours, nil
			}, func(int) Fault { return Fault{Kind: kind, After: 100, Piece: 10, Pause: time.Second} })
			conn := must.Get(p.Dial())(t)
			began := time.Now()
			if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil || time.Since(began) != time.Second {
				t.Errorf("%v: hello after %v, %v; want the pause", kind, time.Since(began), err)
			}
			wrote := make(chan int)
			go func() { n, _ := conn.Write(make([]byte, 200)); wrote <- n }()
			time.Sleep(time.Minute)
			got, _ := s.over()
			if want := map[bool]int{true: 200, false: 100}[kind == NoFault]; len(got) > want || len(got) < min(want, 95) {
				t.Errorf("%v: %d bytes have passed, want %d", kind, len(got), want)
			}
			p.Close()
			<-wrote
			conn.Close()
			synctest.Wait()
		})
	}
}

func TestManyBlackHolesDoNotStayOpen(t *testing.T) {
	Leaks(t)
	s, dial := tcpSink(t)
	p := NewProxy(t, dial, func(int) Fault { return Fault{Kind: BlackHole} })
	addr := p.Listen(t)
	for range 3 * maxParked {
		conn := must.Get(net.Dial("tcp", addr))(t)
		defer conn.Close()
	}
	Eventually(t, Patience, "all have met the fault", func() bool { return p.Faults() == 3*maxParked })
	Eventually(t, Patience, "the oldest are closed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, err := range s.ended {
			if err != nil {
				n++
			}
		}
		return n >= 2*maxParked
	})
}

func TestCutAndClose(t *testing.T) {
	Leaks(t)
	_, dial := tcpSink(t)
	p := NewProxy(t, dial, nil)
	conn := must.Get(net.Dial("tcp", p.Listen(t)))(t)
	defer conn.Close()
	must.Get(io.ReadFull(conn, make([]byte, 5)))(t)
	p.Cut()
	if end := ending(conn, false); end == "silence" || p.Faults() != 0 {
		t.Errorf("after a cut: %s, %d faults counted", end, p.Faults())
	}
	p.Close()
	p.Close()
	if conn, err := p.Dial(); err == nil {
		conn.Close()
		t.Error("a closed proxy takes a connection")
	}
}

func TestSeededFaultsFollowFromTheSeed(t *testing.T) {
	const most = 100 << 10
	kinds := map[FaultKind]int{}
	same := 0
	for n := range 1000 {
		f := SeededFaults(1, most)(n)
		if f != SeededFaults(1, most)(n) {
			t.Fatalf("connection %d has two fates", n)
		}
		if f == SeededFaults(2, most)(n) {
			same++
		}
		if f.Kind == NoFault || f.After < 0 || f.After > most {
			t.Errorf("connection %d: %v", n, f)
		}
		kinds[f.Kind]++
	}
	if len(kinds) != int(faultKinds)-1 || same > 10 {
		t.Errorf("kinds %v; %d fates are those of another seed", kinds, same)
	}
}
