package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
)

const (
	// machineWindow is the most unacknowledged output of a terminal, in bytes; the daemon
	// has the same bound while somebody types elsewhere.
	machineWindow = 64 << 10
	// machineFrame is the text of one message in a flood, in bytes.
	machineFrame = 16 << 10
)

// fakeMachine looks like a daemon to a host: a connection that lends terminals with
// made-up output. Thousands of them fit on the host's machine. One goroutine uses it; the
// fields below mu also belong to the connection's read goroutine.
type fakeMachine struct {
	conn *client.Conn
	uris []string
	sent map[string]int64 // bytes
	msg  []byte

	mu    sync.Mutex
	acked map[string]int64
	news  change.Signal // acked has changed
}

// dialMachine connects machine number n.
func dialMachine(ctx context.Context, e client.Endpoint, n int) (*fakeMachine, error) {
	m := &fakeMachine{sent: map[string]int64{}, acked: map[string]int64{}}
	var err error
	m.conn, err = client.Connect(ctx, e, client.Options{ClientID: machineID(n), Meta: ahp.NewClientMeta(), OnNotification: m.notified})
	return m, err
}

func machineID(n int) string { return fmt.Sprintf("bench-machine-%d", n) }

// terminalURI is terminal t of machine n.
func terminalURI(n, t int) string { return fmt.Sprintf("ahp-terminal:/bench-%d-%d", n, t) }

// lend announces terminals of machine n until there are count of them.
func (m *fakeMachine) lend(ctx context.Context, n, count int) error {
	for t := len(m.uris); t < count; t++ {
		uri := terminalURI(n, t)
		err := m.conn.CreateTerminal(ctx, ahp.CreateTerminalParams{
			Channel: uri, Name: "bench", Claim: ahp.ClientClaim(machineID(n)), ExecutionTarget: ahp.TargetClient,
		})
		if err != nil {
			return fmt.Errorf("machine %d, terminal %d: %w", n, t, err)
		}
		m.uris = append(m.uris, uri)
	}
	return nil
}

func (m *fakeMachine) notified(method string, params []byte) {
	var p ahp.AckParams
	if method != ahp.MethodAck || ahp.DecodeParams(params, &p) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[p.Channel] = p.Applied
	m.news.Raise()
}

// print waits until at most within bytes are unacknowledged, and sends output.
func (m *fakeMachine) print(ctx context.Context, uri string, text []byte, within int64) error {
	if err := m.await(ctx, uri, within); err != nil {
		return err
	}
	m.msg = ahp.AppendOutput(m.msg[:0], uri, m.conn.NextSeq(), text, m.sent[uri])
	m.sent[uri] += int64(len(text))
	return m.conn.Peer().SendRaw(ctx, bytes.Clone(m.msg))
}

// await returns when at most within bytes of a terminal's output are unacknowledged.
func (m *fakeMachine) await(ctx context.Context, uri string, within int64) error {
	for {
		m.mu.Lock()
		news, late := m.news.Next(), m.sent[uri]-m.acked[uri] > within
		m.mu.Unlock()
		if !late {
			return nil
		}
		select {
		case <-news:
		case <-m.conn.Done():
			return fmt.Errorf("the host ended the connection: %w", m.conn.Err())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flood prints block again and again until stop is closed.
func (m *fakeMachine) flood(ctx context.Context, uri string, block []byte, stop <-chan struct{}) error {
	for at := 0; ; at += machineFrame {
		select {
		case <-stop:
			return nil
		default:
		}
		if at+machineFrame > len(block) {
			at = 0
		}
		if err := m.print(ctx, uri, block[at:at+machineFrame], machineWindow); err != nil {
			return err
		}
	}
}

// stamp returns a line with the time at which it was made. stampAge returns the age of
// the newest stamp in text.
func stamp() []byte { return fmt.Appendf(nil, "at %d.\r\n", time.Now().UnixNano()) }

func stampAge(text []byte) (time.Duration, bool) {
	i := bytes.LastIndex(text, []byte("at "))
	if i < 0 {
		return 0, false
	}
	var at int64
	if _, err := fmt.Sscanf(string(text[i:]), "at %d.", &at); err != nil {
		return 0, false
	}
	return time.Duration(time.Now().UnixNano() - at), true
}

// gallery is a set of observers that count the received bytes and do not decode them.
// Each observes one terminal.
type gallery struct {
	conns []*client.Conn

	mu     sync.Mutex
	bytes  int64     // of output, as JSON
	resync int       // how often an observer had fallen behind and got the screen
	ages   []float64 // of stamps, in ms
}

// join adds observer n, of uri. A timed observer notes how old each stamp was when it
// arrived.
func (a *gallery) join(ctx context.Context, e client.Endpoint, n int, uri string, timed bool) error {
	c, err := client.Connect(ctx, e, client.Options{ClientID: fmt.Sprintf("bench-observer-%d", n), OnEnvelope: func(v ahp.EnvelopeView) {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch v.Kind {
		case ahp.ActionTerminalData:
			a.bytes += int64(len(v.Data)) - 2
			if !timed {
				return
			}
			if age, ok := stampAge(v.Data); ok {
				a.ages = append(a.ages, millis(age))
			}
		case ahp.ActionTerminalCleared:
			a.resync++
		}
	}})
	if err != nil {
		return fmt.Errorf("observer %d: %w", n, err)
	}
	a.conns = append(a.conns, c)
	_, err = c.Subscribe(ctx, uri)
	return err
}

// count returns what all observers together received since the last call.
func (a *gallery) count() (bytes int64, resyncs int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes, resyncs = a.bytes, a.resync
	a.bytes, a.resync = 0, 0
	return bytes, resyncs
}

func (a *gallery) close() {
	var all sync.WaitGroup
	for _, c := range a.conns {
		all.Go(c.Close)
	}
	all.Wait()
}
