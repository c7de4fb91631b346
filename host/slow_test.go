package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// gate is a Channel whose receiver reads only as much as the test allows.
type gate struct {
	jsonrpc.Channel
	tokens chan struct{} // one for each message that may be read
	open   chan struct{} // closed when all may
	once   sync.Once
}

func (g *gate) Recv(ctx context.Context) ([]byte, error) {
	select {
	case <-g.tokens:
	case <-g.open:
	}
	return g.Channel.Recv(ctx)
}

func (g *gate) Close() error {
	g.openUp()
	return g.Channel.Close()
}

func (g *gate) openUp() { g.once.Do(func() { close(g.open) }) }

func (g *gate) allow(n int) {
	for range n {
		g.tokens <- struct{}{}
	}
}

// slowViewer is a viewer behind a gate.
func slowViewer(t *testing.T, h *host.Host, id string, subs ...string) (*viewer, *gate) {
	near, far := testkit.Channels()
	g := &gate{Channel: near, tokens: make(chan struct{}, 1<<16), open: make(chan struct{})}
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	v := newViewer(t, g, id)
	t.Cleanup(func() { v.close(); <-served })
	g.allow(1)
	v.initialize(viewOptions{subs: subs})
	return v, g
}

func TestFallenBehindIsBroughtBack(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fallBehind(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

// fallBehind makes an owner do all sorts of things while an observer reads now and then,
// and compares both ends' states.
func fallBehind(t *testing.T, random *rand.Rand) {
	h := testHost(t, host.Options{LogBytes: 4000, LogCount: 50, Scrollback: 3000})
	owner := connect(t, h, "laptop", viewOptions{})
	owner.create(uri)
	keeper := connect(t, h, "keeper", viewOptions{subs: []string{uri}})
	v, g := slowViewer(t, h, "slow", uri)
	commands := 0
	for i := range 400 {
		switch random.IntN(12) {
		case 0:
			commands++
			owner.dispatch(uri, ahp.TerminalCommandExecuted{CommandID: fmt.Sprint(commands), CommandLine: "make", Timestamp: int64(i)})
		case 1:
			owner.dispatch(uri, ahp.TerminalCommandFinished{CommandID: fmt.Sprint(commands)})
		case 2:
			owner.dispatch(uri, ahp.TerminalTitleChanged{Title: fmt.Sprint("title ", i)})
		case 3:
			owner.dispatch(uri, ahp.TerminalResized{Cols: int64(i + 1), Rows: 30})
		case 4:
			g.allow(random.IntN(20))
		case 5:
			if random.IntN(20) == 0 {
				owner.dispatch(uri, ahp.TerminalCleared{})
			}
		case 6:
			owner.dispatch(uri, ahp.TerminalCwdChanged{Cwd: fmt.Sprint("/", i)})
		default:
			owner.output(uri, strings.Repeat(fmt.Sprintf("\x1b[3%dmline %d\r\n", i%8, i), 1+random.IntN(20)), -1)
		}
	}
	owner.dispatch(uri, ahp.TerminalExited{})
	owner.ping()
	g.openUp()
	for _, viewer := range []*viewer{v, keeper} {
		viewer.await("the exit", func() bool { return viewer.states[uri].Lifecycle.Exited() })
	}
	fresh := connect(t, h, "fresh", viewOptions{subs: []string{uri}})
	want := fresh.state(uri)
	for _, viewer := range []*viewer{v, keeper} {
		got := viewer.state(uri)
		// The oldest part of either may have been cut, for the viewer behind the line
		// that says so.
		if n := min(len(got.Content)-2, len(want.Content)-1); n >= 0 {
			if err := suffix(got.Content, want.Content[len(want.Content)-n:]); err != nil {
				t.Errorf("%s: content: %v", viewer.id, err)
			}
		}
		got.Content, want.Content = nil, nil
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); got.Title != want.Title || got.Cols != want.Cols || got.Cwd != want.Cwd ||
			got.SupportsCommandDetection != want.SupportsCommandDetection {
			t.Errorf("%s has %s, the host %s", viewer.id, a, b)
		}
		want = fresh.state(uri)
	}
}

func TestFallingBehindReportsTheAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 4000})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		v, g := slowViewer(t, h, "slow", uri)
		sent, before := 0, 0
		for i := range 1000 {
			if i == 200 { // by now it is stuck, wherever it is; it may have fallen behind on its way
				synctest.Wait()
				before = sent
			}
			line := fmt.Sprintf("line %d\r\n", i)
			sent += len(line)
			owner.output(uri, line, -1)
		}
		owner.ping()
		g.openUp()
		v.awaitText(uri, "line 999\r\n")
		var skipped int
		text := v.textOf(uri)
		if _, err := fmt.Sscanf(text, "[tether-host: %d bytes skipped", &skipped); err != nil {
			t.Fatalf("text begins %.80q, want the number of bytes skipped: %v", text, err)
		}
		_, rest, _ := strings.Cut(text, "fell behind]\r\n")
		if !strings.HasPrefix(rest, "line ") {
			t.Errorf("goes on with %.20q, want the start of a line", rest)
		}
		if gone := sent - len(rest); skipped > gone || skipped < gone-before {
			t.Errorf("told of %d bytes skipped, of %d sent %d are not shown", skipped, sent, gone)
		}
	})
}

func TestStalledObserverIsClosedAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
		watcher.forget()
		served := stalledClient(t, h)
		began := time.Now()
		sent := int64(0)
		for range 100 {
			text := strings.Repeat("x", 32<<10)
			owner.output(uri, text, sent)
			sent += int64(len(text))
			owner.await("the acknowledgement", func() bool { return owner.acks[uri] == sent })
		}
		watcher.await("everything", func() bool { return watcher.text[uri].Len() == int(sent) })
		if took := time.Since(began); took != 0 {
			t.Errorf("with a stalled observer, output to a healthy one took %v", took)
		}
		time.Sleep(14 * time.Second)
		synctest.Wait()
		select {
		case <-served:
			t.Error("closed too early")
		default:
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case <-served:
		default:
			t.Error("still open after 16 s without progress")
		}
	})
}

func TestSlowObserverGetsEveryByte(t *testing.T) {
	// An owner that keeps the window of the daemon, 64 KiB, is paced by its one observer,
	// which takes a frame per 20 ms.
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		v, g := slowViewer(t, h, "slow", uri)
		v.forget()
		reading := time.NewTicker(20 * time.Millisecond)
		defer reading.Stop()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case <-reading.C:
					g.allow(1)
				case <-stop:
					return
				}
			}
		}()
		sent := int64(0)
		for range 100 {
			text := strings.Repeat("x", 32<<10)
			owner.await("room in the window", func() bool { return sent-owner.acks[uri] < 64<<10 })
			owner.output(uri, text, sent)
			sent += int64(len(text))
		}
		v.await("everything", func() bool { return v.text[uri].Len() >= int(sent) })
		if got := v.textOf(uri); strings.Contains(got, "skipped") || len(got) != int(sent) {
			t.Errorf("got %d bytes of %d, or was skipped", len(got), sent)
		}
	})
}

func TestMemoryIsBoundedWithStalledObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{StallTime: time.Hour, Scrollback: 64 << 10, LogBytes: 64 << 10})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		for i := range 20 {
			slowViewer(t, h, fmt.Sprint("stalled ", i), uri)
		}
		text := strings.Repeat("0123456789abcde\n", 2<<10) // 32 KiB
		fill := func(n int) uint64 {
			for range n {
				owner.output(uri, text, -1)
			}
			owner.ping()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := fill(32)
		if after := fill(testkit.Load(512, 160)); after > before+4<<20 {
			t.Errorf("the heap grew from %d to %d bytes with output that 20 observers did not read", before, after)
		}
	})
}

func TestManyRepliesUnreadStopTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		owner.output(uri, strings.Repeat("x", 100<<10), -1)
		near, far := testkit.Channels()
		go func() { _ = h.ServeChannel(context.Background(), far) }()
		defer near.Close()
		send := func(msg string) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return near.Send(ctx, []byte(msg))
		}
		init, _ := json.Marshal(ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "g2"})
		must.Do(t, send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+string(init)+`}`))
		for i := 1; i < 100_000; i++ {
			err := send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscribe","params":{"channel":"ahp-terminal:/t1"}}`, i))
			if err != nil {
				return // it is not read from any more
			}
		}
		t.Error("100000 unread replies were taken")
	})
}

// stalledClient is a client whose socket is not read after its subscription. The channel
// is closed when the host has ended it.
func stalledClient(t *testing.T, h *host.Host) (served chan struct{}) {
	l := testkit.NewPipes()
	served = make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r); close(served) })}
	go func() { _ = server.Serve(l) }() // until it is closed
	near := must.Get(wsconn.Dial(t.Context(), "ws://localhost/", wsconn.Options{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() }}))(t)
	t.Cleanup(func() { near.Close(); server.Close(); <-served })
	init := must.Get(json.Marshal(ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "stalled",
		InitialSubscriptions: []string{uri}}))(t)
	must.Do(t, near.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+string(init)+`}`)))
	must.Get(near.Recv(t.Context()))(t)
	return served
}
