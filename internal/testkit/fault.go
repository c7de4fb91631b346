package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// FaultKind is the way in which a connection ends.
type FaultKind uint8

// The kinds. Bytes that passed before the fault may still be in transit to an end when
// that end is closed, unless stated otherwise.
const (
	NoFault      FaultKind = iota // the connection lasts until one end closes it
	CleanClose                    // both ends read all bytes that passed, then the end of the stream
	Reset                         // both ends fail at once, and lose bytes that they have not read (TCP: RST)
	MidFrame                      // as Reset, but only a part of the last write has passed
	BlackHole                     // nothing passes any more and neither end is told
	HalfOpenNear                  // the far end is closed; the near one is not told
	HalfOpenFar                   // the near end is closed; the far one is not told
	faultKinds
)

func (k FaultKind) String() string {
	return [...]string{"no fault", "clean close", "reset", "mid-frame cut", "black hole", "near end half open", "far end half open"}[k]
}

// Fault describes how a Proxy breaks one connection.
type Fault struct {
	Kind FaultKind
	// After is the number of bytes, in both directions together, before the fault. With
	// MidFrame exactly these pass; with the other kinds the piece that reaches After
	// passes as a whole.
	After int64
	// Piece is the largest number of bytes that pass at once: a slow drip, or frames that
	// arrive in parts. 0 means no such bound.
	Piece int
	// Pause delays each piece. The next piece waits for the one before.
	Pause time.Duration
}

func (f Fault) String() string {
	return fmt.Sprintf("%v after %d bytes, in pieces of %d, each %v", f.Kind, f.After, f.Piece, f.Pause)
}

// SeededFaults returns the faults of the connections 0, 1, 2, …. They follow from seed
// and most alone. All kinds but NoFault are equally frequent and strike after at most
// most bytes, usually fewer. One connection in four passes small pieces, another one in
// four pieces with pauses of up to 2 ms.
func SeededFaults(seed uint64, most int64) func(n int) Fault {
	return func(n int) Fault {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		f := Fault{Kind: 1 + FaultKind(random.IntN(int(faultKinds)-1))}
		f.After = random.Int64N(1 + random.Int64N(most))
		switch random.IntN(4) {
		case 0:
			f.Piece = 1 + random.IntN(1500)
		case 1:
			f.Piece, f.Pause = 1+random.IntN(32<<10), time.Duration(random.IntN(2000))*time.Microsecond
		}
		return f
	}
}

// parks reports whether the fault leaves an end open and does not tell it.
func (f Fault) parks() bool {
	return f.Kind == BlackHole || f.Kind == HalfOpenNear || f.Kind == HalfOpenFar
}

// strike carries out the fault on a connection through the proxy.
func (c *faulty) strike() {
	switch c.fault.Kind {
	case CleanClose:
		closeWrite(c.near)
		closeWrite(c.far)
		return // the pumps go on reading, see faulty.pass
	case Reset, MidFrame:
		reset(c.near)
		reset(c.far)
	case HalfOpenNear:
		c.far.Close()
	case HalfOpenFar:
		c.near.Close()
	}
}

// closeWrite ends the stream to the peer of conn. The peer may still send, unless conn
// can only be closed as a whole.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed already
		return
	}
	conn.Close()
}

// reset closes conn and drops the bytes in transit.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	conn.Close()
}
