package testkit

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// NATSFaults are the faults of a NATSProxy.
type NATSFaults struct {
	Seed  uint64
	Lost  float64       // share of messages that are dropped, in each direction; 0 to 1
	Delay time.Duration // each message waits a random time below this, and delays the messages behind it
}

// NATSProxy passes connections on to a NATS server. It drops whole messages, as NATS
// itself may, delays them, and can hold up everything as a network partition does. Its
// methods may be called from any goroutine.
//
// Goroutines: those of a Proxy, and two for each connection, until it has ended. The
// test's cleanup closes the proxy and waits for them.
type NATSProxy struct {
	URL string // of the proxy, for clients

	outer *Proxy

	mu     sync.Mutex
	faults NATSFaults
	gate   chan struct{} // closed while messages may pass
	lost   int
}

// NewNATSProxy starts a proxy to the server at address, HOST:PORT. Start the servers with
// --no_advertise, so that clients do not learn addresses that bypass the proxy.
func NewNATSProxy(t testing.TB, address string, f NATSFaults) *NATSProxy {
	t.Helper()
	p := &NATSProxy{faults: f, gate: make(chan struct{})}
	close(p.gate)
	var work sync.WaitGroup
	t.Cleanup(func() { p.Partition(false); work.Wait() })
	var mu sync.Mutex
	count := uint64(0)
	p.outer = NewProxy(t, func() (net.Conn, error) {
		far, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		count++
		n := count
		mu.Unlock()
		near, ours := net.Pipe()
		for way, ends := range [2][2]net.Conn{{far, ours}, {ours, far}} {
			random := rand.New(rand.NewPCG(f.Seed, n*2+uint64(way)))
			work.Go(func() {
				_ = p.pass(ends[0], ends[1], random) // the end of either closes both
				ends[0].Close()
				ends[1].Close()
			})
		}
		return near, nil
	}, nil)
	p.URL = "nats://" + p.outer.Listen(t)
	return p
}

// Cut resets all connections at once.
func (p *NATSProxy) Cut() { p.outer.Cut() }

// Partition(true) holds up everything in both directions, and tells neither end.
// Partition(false) passes on what was held up, where no end has closed the connection.
func (p *NATSProxy) Partition(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		if on {
			p.gate = make(chan struct{})
		}
	default:
		if !on {
			close(p.gate)
		}
	}
}

// Lose changes the share of messages that are dropped.
func (p *NATSProxy) Lose(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.Lost = share
}

// Lost returns the number of dropped messages.
func (p *NATSProxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// pass moves the protocol lines and messages of one direction until the connection ends.
func (p *NATSProxy) pass(dst io.Writer, src io.Reader, random *rand.Rand) error {
	in := bufio.NewReaderSize(src, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		size, isMessage, err := natsPayload(line)
		if err != nil {
			return err
		}
		if isMessage {
			line = append(line, make([]byte, size+2)...)
			if _, err := io.ReadFull(in, line[len(line)-size-2:]); err != nil {
				return err
			}
		}
		p.mu.Lock()
		gate, delay := p.gate, p.faults.Delay
		drop := isMessage && random.Float64() < p.faults.Lost
		if drop {
			p.lost++
		}
		p.mu.Unlock()
		<-gate
		if drop {
			continue
		}
		if isMessage && delay > 0 {
			time.Sleep(time.Duration(random.Int64N(int64(delay))))
		}
		if _, err := dst.Write(line); err != nil {
			return err
		}
	}
}

// natsPayload returns the size of the payload, in bytes and without its CR LF, that
// follows a protocol line. The lines PUB, HPUB, MSG and HMSG end with it; no payload
// follows other lines (docs.nats.io, client protocol).
func natsPayload(line []byte) (size int, isMessage bool, err error) {
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return 0, false, nil
	}
	switch string(bytes.ToUpper(fields[0])) {
	case "PUB", "HPUB", "MSG", "HMSG":
		size, err = strconv.Atoi(string(fields[len(fields)-1]))
		if err != nil || size < 0 || size > 64<<20 {
			return 0, false, fmt.Errorf("a line of NATS that cannot be read: %.80q", line)
		}
		return size, true, nil
	}
	return 0, false, nil
}
