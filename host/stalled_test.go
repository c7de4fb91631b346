package host_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// An observer whose socket is not read, one behind a network that has gone, and one that
// gets some bytes a millisecond: neither the owner nor the observers that read are held
// up or miss anything. (That they are not even slowed is tested without a real clock.)
func TestStalledSocketsSlowNobody(t *testing.T) {
	_, url := serve(t, host.Options{})
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	var healthy []*viewer
	for _, id := range []string{"one", "two"} {
		v := dial(t, url, id, viewOptions{subs: []string{uri}})
		v.forget()
		healthy = append(healthy, v)
	}
	f := &flooder{owner: owner}
	amount := int64(testkit.Load(1<<20, 512<<10)) // bytes
	alone := f.flood(t, amount, healthy)

	unread(t, url)
	through(t, url, testkit.Fault{Kind: testkit.BlackHole, After: 100 << 10})
	through(t, url, testkit.Fault{Piece: 200, Pause: time.Millisecond})
	beside := f.flood(t, amount, healthy)

	t.Logf("%d KiB to two observers: %v alone, %v beside three that are stalled", amount>>10, alone, beside)
	for _, v := range healthy {
		if gaps, end, err := testkit.CheckFlood(v.textOf(uri)); err != nil || len(gaps) > 0 || end != f.sent.Offset() {
			t.Errorf("observer %s has %d of %d bytes, gaps %v, %v", v.id, end, f.sent.Offset(), gaps, err)
		}
	}
}

// flooder is an owner that keeps the window of the daemon.
type flooder struct {
	owner *viewer
	sent  testkit.Flood
}

// flood sends n bytes and returns how long it took until the observers had all of them.
func (f *flooder) flood(t *testing.T, n int64, observers []*viewer) time.Duration {
	t.Helper()
	const frame, window = 16 << 10, 64 << 10
	const behind = 256 << 10 // the host keeps more for observers: on a busy machine these would lose a faster owner's output
	began := time.Now()
	for end := f.sent.Offset() + n; f.sent.Offset() < end; {
		at := f.sent.Offset()
		var b strings.Builder
		for b.Len() < frame {
			b.WriteString(f.sent.Next(1 << 10))
		}
		f.owner.output(uri, b.String(), at)
		f.owner.await("an acknowledgement", func() bool { return f.owner.acks[uri] >= f.sent.Offset()-window })
		for _, v := range observers {
			v.await("most of it", func() bool { return v.text[uri].Len() >= int(f.sent.Offset())-behind })
		}
	}
	for _, v := range observers {
		v.await("everything", func() bool { return v.text[uri].Len() == int(f.sent.Offset()) })
	}
	return time.Since(began)
}

// subscribing is an observer's message. Nobody waits for a stalled one's answer.
func subscribing(id string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1.0.0"],"clientId":"` + id +
		`","initialSubscriptions":["` + uri + `"]}}`)
}

// unread connects an observer that reads nothing.
func unread(t *testing.T, url string) {
	t.Helper()
	ch, err := wsconn.Dial(t.Context(), url, wsconn.Options{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}})
	if err == nil {
		t.Cleanup(func() { ch.Close() })
		err = ch.Send(t.Context(), subscribing("unread"))
	}
	must.Do(t, err)
}

// through connects an observer that reads, over a bad network.
func through(t *testing.T, url string, fault testkit.Fault) {
	t.Helper()
	p := testkit.NewProxy(t, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(url, "ws://")) },
		func(int) testkit.Fault { return fault })
	ch, err := wsconn.Dial(t.Context(), "ws://"+p.Listen(t), wsconn.Options{ReadLimit: 64 << 20})
	if err == nil {
		err = ch.Send(t.Context(), subscribing(strings.ReplaceAll(fault.Kind.String(), " ", "-")))
	}
	must.Do(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for err := error(nil); err == nil; {
			_, err = ch.Recv(context.Background())
		}
	}()
	t.Cleanup(func() { ch.Close(); <-done })
}

// The system's buffer for an observer that reads nothing is bounded.
func TestSendBuffersAreBounded(t *testing.T) {
	h, url := serve(t, host.Options{Scrollback: 16 << 20})
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	f := &flooder{owner: owner}
	unread(t, url)
	owner.await("the observer", func() bool { return owner.observers[uri] == 1 })
	last := int64(-1)
	for range 100 {
		f.flood(t, 256<<10, nil)
		now := h.Taken("unread")
		if now > 0 && now == last {
			break
		}
		last = now
	}
	if most := int64(1 << 20); last <= 0 || last > most {
		t.Errorf("the socket of an observer that reads nothing has taken %d bytes, want at most %d", last, most)
	}
}
