package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/jsonspan"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The load that one host bears.
var (
	loadMachines  = testkit.Load(1000, 120)
	loadObservers = testkit.Load(200, 40)
)

const (
	loadLent   = 5 // by each machine
	loadFloods = 20
	loadFlood  = 96 << 10 // bytes of each
)

// member is one of many clients, which keeps no more than it needs.
type member struct {
	conn *client.Conn

	mu    sync.Mutex
	text  []byte           // of the one terminal that it watches
	from  int64            // serverSeq of its snapshot
	acked map[string]int64 // of those that it lends
	moved chan struct{}    // closed when something has come
}

// enter connects one to a host.
func enter(t *testing.T, h *host.Host, id string) *member {
	near, far := testkit.Channels()
	go func() { _ = h.ServeChannel(context.Background(), far) }() // ends with the host
	m := &member{acked: map[string]int64{}, moved: make(chan struct{})}
	var err error
	m.conn, err = client.ConnectChannel(t.Context(), near, client.Options{ClientID: id, Meta: ahp.NewClientMeta(), OnEnvelope: m.envelope, OnNotification: m.notified})
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return m
}

func (m *member) envelope(v ahp.EnvelopeView) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Kind == ahp.ActionTerminalData && v.ServerSeq > m.from {
		m.text, _ = jsonspan.AppendUnquote(m.text, v.Data)
		m.wakeLocked()
	}
}

func (m *member) notified(method string, params []byte) {
	var p ahp.AckParams
	if method != ahp.MethodAck || ahp.DecodeParams(params, &p) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[p.Channel] = p.Applied
	m.wakeLocked()
}

// seen is the text so far.
func (m *member) seen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.text)
}

func (m *member) wakeLocked() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// until waits until ok, which is called with the lock, holds.
func (m *member) until(ctx context.Context, ok func() bool) error {
	for {
		m.mu.Lock()
		done, moved := ok(), m.moved
		m.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-moved:
		case <-m.conn.Done():
			return fmt.Errorf("the connection has ended: %w", m.conn.Err())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lend announces a terminal and prints its text, from where the host has it, with at most
// the daemon's window on its way.
func (m *member) lend(ctx context.Context, id, uri, text string) error {
	p := ahp.CreateTerminalParams{Channel: uri, Name: "build", Claim: ahp.ClientClaim(id), ExecutionTarget: ahp.TargetClient}
	if err := m.conn.CreateTerminal(ctx, p); err != nil {
		return err
	}
	at := int64(0)
	if err := m.until(ctx, func() (told bool) { at, told = m.acked[uri]; return told }); err != nil {
		return err
	}
	return m.print(ctx, uri, text, int(at))
}

// print prints text from an offset on.
func (m *member) print(ctx context.Context, uri, text string, at int) error {
	const frame, window = 16 << 10, 64 << 10
	for at < len(text) {
		end := min(at+frame, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		offset := int64(at)
		if _, err := m.conn.Dispatch(ctx, uri, ahp.TerminalOutput{Data: text[at:end], Offset: &offset}); err != nil {
			return err
		}
		at = end
		if err := m.until(ctx, func() bool { return m.acked[uri] >= int64(at)-window }); err != nil {
			return err
		}
	}
	return m.until(ctx, func() bool { return m.acked[uri] >= int64(len(text)) })
}

// watch subscribes to a terminal and keeps its text.
func (m *member) watch(ctx context.Context, uri string) error {
	r, err := m.conn.Subscribe(ctx, uri)
	if err != nil {
		return err
	}
	var st ahp.TerminalState
	if err := json.Unmarshal(r.Snapshot.State, &st); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from, m.text = r.Snapshot.FromSeq, []byte(st.Text())
	return nil
}

func loadID(machine int) string { return fmt.Sprint("machine-", machine) }

func loadURI(machine, n int) string { return fmt.Sprintf("ahp-terminal:/%d-%d", machine, n) }

// loadText is a terminal's output before any flood.
func loadText(machine, n int) string { return fmt.Sprintf("terminal %d of machine %d\r\n", n, machine) }

// each calls do for each of n concurrently, and fails the test with its errors.
func each(t *testing.T, n int, do func(n int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// One host has a thousand machines with five terminals each, 200 observers and floods on
// twenty: all get every byte of their terminals, an observer that reads nothing delays
// nobody, and memory stays below the bound. The host that follows it gets every terminal
// with every byte again.
func TestLoad(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	synctest.Test(t, func(t *testing.T) {
		const memory = 24 << 20
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble: when nothing happens any more
		defer cancel()
		texts := map[string]string{} // of the terminals that flood
		for n := range loadFloods {
			var flood testkit.Flood
			text := loadText(n, 0)
			for flood.Offset() < loadFlood {
				text += flood.Next(1 << 10)
			}
			texts[loadURI(n, 0)] = text
		}
		textOf := func(machine, n int) string {
			if text, floods := texts[loadURI(machine, n)]; floods {
				return text
			}
			return loadText(machine, n)
		}
		machines := make([]*member, loadMachines)
		comeTo := func(h *host.Host, text func(machine, n int) string) {
			each(t, loadMachines, func(i int) error {
				machines[i] = enter(t, h, loadID(i))
				for n := range loadLent {
					if err := machines[i].lend(ctx, loadID(i), loadURI(i, n), text(i, n)); err != nil {
						return err
					}
				}
				return nil
			})
			if n := h.Count(); n != loadMachines*loadLent {
				t.Fatalf("%d terminals are lent", n)
			}
		}
		h := host.New(host.Options{MaxMemory: memory})
		defer h.Close()
		comeTo(h, loadText)
		stalled := loadStall(t, h, loadURI(0, 0))
		observers := make([]*member, loadObservers)
		each(t, loadObservers, func(i int) error {
			observers[i] = enter(t, h, fmt.Sprint("observer-", i))
			return observers[i].watch(ctx, loadURI(i%loadFloods, 0))
		})
		began := time.Now()
		each(t, loadFloods, func(i int) error {
			return machines[i].print(ctx, loadURI(i, 0), textOf(i, 0), len(loadText(i, 0)))
		})
		each(t, loadObservers, func(i int) error {
			want := textOf(i%loadFloods, 0)
			err := observers[i].until(ctx, func() bool { return len(observers[i].text) >= len(want) })
			if got := observers[i].seen(); err == nil && got != want {
				_, end, wrong := testkit.CheckFlood(strings.TrimPrefix(got, loadText(i%loadFloods, 0)))
				err = fmt.Errorf("it has %d bytes of %d: the flood is whole up to %d, %v", len(got), len(want), end, wrong)
			}
			return err
		})
		if took := time.Since(began); took >= 100*time.Millisecond { // for as long an acknowledgement may be held back; text is gathered for 1 ms
			t.Errorf("beside an observer that reads nothing, it took %v", took)
		}
		if counted, real, _ := h.Memory(); counted != real || counted > memory {
			t.Errorf("it counts %d bytes, and there are %d; at most %d should be", counted, real, memory)
		}
		stalled()
		h.Close()
		for _, m := range append(machines, observers...) {
			<-m.conn.Done()
		}

		next := host.New(host.Options{MaxMemory: memory})
		defer next.Close()
		comeTo(next, textOf)
		ann := enter(t, next, "ann")
		for i := range loadMachines {
			for n := range loadLent {
				err := ann.watch(ctx, loadURI(i, n))
				if got := ann.seen(); err != nil || got != textOf(i, n) {
					t.Fatalf("at the next host, %s has %d bytes of %d, %v", loadURI(i, n), len(got), len(textOf(i, n)), err)
				}
				must.Do(t, ann.conn.Unsubscribe(ctx, loadURI(i, n)))
			}
		}
	})
}

// loadStall subscribes an observer that stops reading. end ends it.
func loadStall(t *testing.T, h *host.Host, uri string) (end func()) {
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	init, err := json.Marshal(ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "stalled", InitialSubscriptions: []string{uri}})
	if err == nil {
		err = near.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+string(init)+`}`))
	}
	if err == nil {
		_, err = near.Recv(t.Context())
	}
	must.Do(t, err)
	return func() { near.Close(); <-served }
}
