package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// FaultKind is how a connection ends.
type FaultKind uint8

// The kinds. Bytes that passed before the fault may still be in transit to an end when that end is closed, unless stated otherwise.
const (
	NoFault      FaultKind = iota // it lasts until one end closes it
	CleanClose                    // both ends read all that passed and then the end of the stream
	Reset                         // both ends fail at once, and lose bytes that they have not read (TCP: RST)
	MidFrame                      // as Reset, but the last write has passed in part
	BlackHole                     // nothing passes any more and neither end is told
	HalfOpenNear                  // the far end is closed; the near one is not told
	HalfOpenFar                   // the near end is closed; the far one is not told
	faultKinds
)

func (k FaultKind) String() string {
	return [...]string{"no fault", "clean close", "reset", "mid-frame cut", "black hole", "near end half open", "far end half open"}[k]
}

// Fault is the fate of one connection through a Proxy.
type Fault struct {
	Kind FaultKind
	// After is how many bytes, of both directions together, pass before it.
	After int64
	// Piece, if not 0, is the most that passes at once, in bytes: a slow drip, or frames that arrive in parts.
	Piece int
	// Pause is the time that each piece is on its way. The next one waits for it.
	Pause time.Duration
}

func (f Fault) String() string {
	return fmt.Sprintf("%v after %d bytes, in pieces of %d, each %v", f.Kind, f.After, f.Piece, f.Pause)
}

// SeededFaults returns the fates of the connections 0, 1, 2, …, which follow from seed alone: each kind of end as often as the others,
// after up to most bytes but mostly fewer, one in four in small pieces and one in four with pauses of up to 2 ms.
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

// parks tells the kinds that leave an end open without telling it.
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

// closeWrite ends the stream towards the peer of conn, which may still send.
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
