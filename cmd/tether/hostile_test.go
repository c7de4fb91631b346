package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tether/agent/localapi"
	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// largeList is JSON with nearly as many values as a message may have.
func largeList(head, element, tail string, values int) jsonRaw {
	return jsonRaw(head + element + strings.Repeat(","+element, values) + tail)
}

type jsonRaw []byte

// MarshalJSON implements json.Marshaler.
func (r jsonRaw) MarshalJSON() ([]byte, error) { return r, nil }

// rogue is a host that sends a daemon the most costly messages, as fast as it reads them,
// and disposes of its lent terminals.
type rogue struct {
	said   atomic.Int64 // messages
	served sync.WaitGroup
}

func (h *rogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.served.Add(1)
	defer h.served.Done()
	ch, err := wsconn.Accept(w, r, wsconn.Options{})
	if err != nil {
		return
	}
	var seen sync.Map // channels
	marker := ahp.NewClientTerminals(1000)
	peer := jsonrpc.NewPeer(ch, jsonrpc.Options{MaxMessage: 16 << 20, Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
		var p ahp.SubscribeParams
		_ = ahp.DecodeParams(r.Params, &p)
		switch {
		case r.IsNotification():
		case r.Method == ahp.MethodInitialize:
			_ = r.Reply(ahp.InitializeResult{ProtocolVersion: "1.0.0", Meta: marker.Meta()})
		case r.Method == ahp.MethodSubscribe:
			_ = r.Reply(largeList(`{"snapshot":{"resource":"`+p.Channel+`","fromSeq":1,"state":{"executionTarget":"client","content":[`, `{}`, `]}}}`, 19_000))
		case r.Method == ahp.MethodCreateTerminal:
			seen.Store(p.Channel, true)
			_ = r.Reply(nil)
		default:
			_ = r.ReplyError(jsonrpc.Errorf(-1, "%s", strings.Repeat("no ", 100<<10)))
		}
	})})
	ctx, cancel := context.WithCancel(context.Background())
	var saying sync.WaitGroup
	saying.Go(func() { h.say(ctx, peer, &seen) })
	_ = peer.Run(ctx)
	cancel()
	saying.Wait()
}

// say sends messages until the connection ends: the last of a round ends it.
func (h *rogue) say(ctx context.Context, peer *jsonrpc.Peer, seen *sync.Map) {
	const many = 19_000 // values; a link takes 20,480
	for n := int64(1); ctx.Err() == nil; n++ {
		channels := []string{ahp.RootURI, "ahp-terminal:/unknown"}
		seen.Range(func(uri, _ any) bool { channels = append(channels, uri.(string)); return true })
		for _, uri := range channels {
			head := fmt.Sprintf(`{"channel":%q,"serverSeq":%d,"action":{"type":`, uri, n)
			for _, action := range []jsonRaw{
				largeList(head+`"root/terminalsChanged","terminals":[`, `{}`, `]}}`, many),
				largeList(head+`"session/activeClientSet","activeClient":{"clientId":"x","tools":[`, `{}`, `]}}}`, many),
				largeList(head+`"x","y":[`, `[]`, `]}}`, many),
				jsonRaw(head + `"terminal/input","data":"` + strings.Repeat("rm -rf /\\r", 100<<10) + `"}}`),
				jsonRaw(head + `"terminal/titleChanged","title":"` + strings.Repeat("x", 1<<20) + `"}}`),
			} {
				if peer.Notify(ctx, ahp.MethodAction, action) != nil {
					return
				}
				h.said.Add(1)
			}
			if n%20 == 0 {
				_ = peer.Notify(ctx, ahp.MethodAction, jsonRaw(head+`"terminal/exited","exitCode":0}}`))
			}
		}
		if n%50 == 0 {
			_ = peer.Notify(ctx, "x", largeList(`[`, `[]`, `]`, 2*many)) // too many: the daemon hangs up
		}
	}
}

// mob are clients that send a host the most costly messages: messages that do not end,
// lists, and requests whose answers nobody reads.
func mob(t *testing.T, url string, round int) (disperse func()) {
	t.Helper()
	list := largeList(`{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-session:/1","clientSeq":1,"action":{"type":"session/activeClientSet",`+
		`"activeClient":{"clientId":"x","tools":[`, `{}`, `]}}}}`, 32_000)
	endless := append(binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, 1<<20), 0, 0, 0, 0) // a text frame of 1 MiB, masked by zeros
	endless = append(endless, strings.Repeat(" ", 1000<<10)...)
	var all sync.WaitGroup
	var open []*wsconn.Conn
	for i := range map[bool]int{false: 9, true: 24}[testkit.Soaking()] {
		var socket net.Conn
		ch := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			socket = c
			return c, err
		}}))(t)
		open = append(open, ch)
		id := fmt.Sprintf("mob-%d-%d", round, i)
		all.Go(func() {
			_ = ch.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1.0.0"],"clientId":"`+id+`"}}`))
			if i%3 == 0 {
				_, _ = socket.Write(endless)
				return
			}
			for n := 0; ; n++ { // until it is closed
				msg := list
				if i%3 == 1 {
					msg = jsonRaw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscribe","params":{"channel":"ahp-root://"}}`, n+2))
				}
				if ch.Send(t.Context(), msg) != nil {
					return
				}
			}
		})
	}
	return func() {
		for _, ch := range open {
			_ = ch.Close()
		}
		all.Wait()
	}
}

// memory is the memory report of the daemon's runtime, in bytes, by the names of
// runtime.MemStats.
func (m *mortal) memory() map[string]int64 {
	m.t.Helper()
	text := must.Get(m.door.Profile(m.t.Context(), "heap", 1))(m.t)
	stats := make(map[string]int64)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "# ")), " = ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			stats[name] = n
		}
	}
	if stats["Sys"] == 0 || stats["HeapAlloc"] == 0 {
		m.t.Fatalf("the daemon says nothing about its memory:\n%s", text)
	}
	return stats
}

// The memory that HostileFromAllSides lets a daemon and a host keep, in bytes. A busy
// machine may collect garbage a little later.
const (
	hostileLogs = 32 << 20            // terminals.total_log_bytes
	perLink     = 32<<20 + 2<<20      // a link's largest message, decoded and as it came
	spare       = 16 << 20            // garbage
	mortalLogs  = mortalLog + 512<<10 // of a terminal at the host: its log and its scrollback
	daemonMost  = hostileLogs + overhead + 2*perLink
)

// A hostile host, hostile clients of another one and a hostile agent, all at once:
// another terminal's output arrives whole and in order at its host, nobody ends or
// withdraws it, and neither daemon nor host takes more memory than configured:
//
//   - the daemon takes of the system total_log_bytes, overhead, and the largest message
//     of each of its two links;
//   - the host keeps the log and the scrollback of its only terminal, and nothing that
//     hostile clients have sent.
func TestHostileFromAllSides(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	configure(t, "policy.block_list", "off") // the agent calls tether
	configure(t, "terminals.total_log_bytes", fmt.Sprintf("%dMiB", hostileLogs>>20))
	m := newMortal(t)
	evil := &rogue{}
	server := httptest.NewServer(evil)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	must.Get(m.door.Pair(t.Context(), localapi.PairRequest{Name: "rogue", URL: "ws" + strings.TrimPrefix(server.URL, "http")}))(t)
	flood := m.spawn(localapi.SpawnRequest{Command: testkit.FloodCommand(t, 0, 0), OnSlow: "hold", Name: "flood", LendTo: []string{"lab"}})
	uri := m.uri(flood.ID)
	w := m.watch(uri, false)
	const agent = `while :; do tether kill flood; tether unlend flood; tether unlend --all; tether approvals; tether read flood | tail -c 100; tether host tools lab on;
		echo x | tether attach flood; tether token create --person me; head -c 300000 /dev/urandom | od; done 2>&1`
	spawned := must.Get(m.door.As("mallory").Spawn(t.Context(), localapi.SpawnRequest{Line: agent, Cwd: m.home, Env: os.Environ()}))(t)
	crowded := httptest.NewServer(m.host)
	t.Cleanup(crowded.Close)
	url := "ws" + strings.TrimPrefix(crowded.URL, "http")
	rest, restHost := m.memory(), heapInUse()
	var most, kept, mostHost int64
	for round := range testkit.Rounds(t, 1, 1000) {
		decoy := m.spawn(localapi.SpawnRequest{Line: "while :; do date; sleep 1; done", LendTo: []string{"rogue"}})
		disperse := mob(t, url, round)
		saw, _, _ := w.state()
		heard := evil.said.Load()
		testkit.Eventually(t, patience, "the observer sees more, and the hostile host says more", func() bool {
			now, _, err := w.state()
			return err != nil || now > saw+64<<10 && evil.said.Load() > heard+5
		})
		now := m.memory()
		most = max(most, now["Sys"]-now["HeapReleased"])
		disperse()
		testkit.Eventually(t, patience, "the host keeps one terminal, and nothing of hostile clients", func() bool {
			kept = heapInUse() - restHost
			return kept < mortalLogs+spare
		})
		mostHost = max(mostHost, kept)
		if _, exits, err := w.state(); err != nil || len(exits) > 0 {
			t.Fatalf("round %d: exits %v, %v", round, exits, err)
		}
		if now := m.find(flood.ID); now.Exit != nil || !slices.ContainsFunc(now.Loans, func(l localapi.Loan) bool { return l.Host == "lab" }) {
			t.Fatalf("round %d: the terminal is %+v", round, now)
		}
		_, _ = m.door.Kill(t.Context(), decoy.ID) // the hostile host may have ended it
	}
	t.Logf("soak: the daemon had %d MiB of the system and %d at most (bound: %d), the host kept %d MiB more at most (bound: %d); the hostile host said %d messages",
		(rest["Sys"]-rest["HeapReleased"])>>20, most>>20, daemonMost>>20, mostHost>>20, (mortalLogs+spare)>>20, evil.said.Load())
	if most > daemonMost {
		t.Errorf("the daemon takes %d MiB of the system, want at most %d", most>>20, daemonMost>>20)
	}
	if _, err := m.door.Kill(t.Context(), spawned.ID); err != nil {
		t.Error(err)
	}
	if _, err := m.door.Unpair(t.Context(), "rogue"); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, patience, "the daemon keeps what terminals have printed, and nothing of the hostile host", func() bool {
		return m.memory()["HeapAlloc"] < rest["HeapAlloc"]+hostileLogs
	})
	m.endFlood(flood, w)
}

// heapInUse is this process's heap, in bytes.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // pools are empty after the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
