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
	"unicode/utf16"
	"unicode/utf8"

	"tether/ahp"
	"tether/host"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// units is the length of text as AHP's flow control counts it.
func units(text string) int64 { return 2 * int64(len(utf16.Encode([]rune(text)))) }

// pane is an observer whose delivery is windowed. It gives credit as the test wants.
type pane struct {
	t      *testing.T
	peer   *jsonrpc.Peer
	limits ahp.FlowLimits

	mu       sync.Mutex
	cond     *sync.Cond
	generous bool // gives credit at once
	deaf     bool // to frames: they are of several channels
	partial  string
	got      int64 // bytes of whole messages
	given    int64 // of credit
	ready    bool
	resets   int
	frames   int
	text     strings.Builder
	state    ahp.TerminalState
	credited int64 // by the host
	resyncs  int
}

// newPane connects and initializes.
func newPane(t *testing.T, h *host.Host, id string, generous bool) *pane {
	t.Helper()
	near, far := jsonrpc.Pipe()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	p := &pane{t: t, generous: generous}
	p.cond = sync.NewCond(&p.mu)
	p.peer = jsonrpc.NewPeer(near, jsonrpc.Options{Handler: p})
	ran := make(chan struct{})
	go func() { defer close(ran); _ = p.peer.Run(context.Background()) }() // until the test ends
	t.Cleanup(func() { _ = p.peer.Close(); <-ran; <-served })
	init := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: id, Meta: ahp.NewClientMeta()}
	if err := p.peer.Call(t.Context(), ahp.MethodInitialize, init, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// follow subscribes with limits.
func (p *pane) follow(uri string, limits ahp.FlowLimits) ahp.SubscribeResult {
	p.t.Helper()
	var r ahp.SubscribeResult
	params := ahp.SubscribeParams{Channel: uri, FlowControl: &ahp.FlowOffer{Receive: limits}}
	if err := p.peer.Call(p.t.Context(), ahp.MethodSubscribe, params, &r); err != nil {
		p.t.Fatal(err)
	}
	if r.FlowControl != nil {
		p.mu.Lock()
		p.limits = r.FlowControl.ClientReceive
		p.mu.Unlock()
	}
	return r
}

// Handle implements jsonrpc.Handler.
func (p *pane) Handle(_ context.Context, r *jsonrpc.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.cond.Broadcast()
	switch r.Method {
	case ahp.MethodChannelFrame:
		if p.frames++; p.deaf {
			return
		}
		whole := `{"jsonrpc":"2.0","method":"channel/frame","params":` + string(r.Params) + "}"
		if n := units(whole); p.limits.MaximumFrameBytes > 0 && n > p.limits.MaximumFrameBytes {
			p.t.Errorf("a frame of %d bytes, at most %d are taken", n, p.limits.MaximumFrameBytes)
		}
		var f ahp.FrameParams
		if err := ahp.DecodeParams(r.Params, &f); err != nil {
			p.t.Errorf("frame: %v", err)
		}
		if p.partial += f.Data; f.Final {
			p.message(p.partial)
			p.partial = ""
		}
	case ahp.MethodChannelReady:
		p.ready = true
	case ahp.MethodChannelReset:
		p.resets++
		p.ready, p.partial, p.got, p.given = false, "", 0, 0
	case ahp.MethodChannelCredit:
		var c ahp.CreditParams
		if err := ahp.DecodeParams(r.Params, &c); err != nil {
			p.t.Errorf("credit: %v", err)
		}
		p.credited = c.ConsumedBytes
	}
}

// message takes a whole one.
func (p *pane) message(text string) {
	var n struct {
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		p.t.Errorf("message %.200s: %v", text, err)
		return
	}
	if n := units(text); p.limits.MaximumMessageBytes > 0 && n > p.limits.MaximumMessageBytes {
		p.t.Errorf("a message of %d bytes", n)
	}
	p.got += units(text)
	if p.limits.WindowBytes > 0 && p.got-p.given >= p.limits.WindowBytes+p.limits.MaximumMessageBytes {
		p.t.Errorf("%d bytes without credit, with a window of %d", p.got-p.given, p.limits.WindowBytes)
	}
	switch n.Method {
	case ahp.MethodChannelSnapshot:
		var s ahp.ChannelSnapshotParams
		err := json.Unmarshal(n.Params, &s)
		if err == nil {
			err = json.Unmarshal(s.Snapshot.State, &p.state)
		}
		if err != nil || p.ready {
			p.t.Errorf("snapshot %.200s: %v, ready before %v", text, err, p.ready)
		}
		p.text.Reset()
		p.text.WriteString(p.state.Text())
	case ahp.MethodAction:
		var e ahp.Envelope
		if err := json.Unmarshal(n.Params, &e); err != nil {
			p.t.Errorf("envelope: %v", err)
		}
		switch a, _ := ahp.DecodeAction(e.Action); a := a.(type) {
		case ahp.TerminalData:
			p.text.WriteString(a.Data)
		case ahp.TerminalCleared:
			p.text.Reset()
			p.resyncs++
		default:
			p.state = ahp.ReduceTerminal(p.state, a)
		}
	}
	if p.generous {
		p.giveLocked(p.got)
	}
}

// giveLocked gives credit.
func (p *pane) giveLocked(n int64) {
	p.given = n
	_ = p.peer.Notify(context.Background(), ahp.MethodChannelCredit, ahp.CreditParams{Channel: uri, ConsumedBytes: n}) // fails only with the connection
}

func (p *pane) await(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.AfterFunc(time.Minute, func() { p.mu.Lock(); p.cond.Broadcast(); p.mu.Unlock() })
	defer deadline.Stop()
	began := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !cond() {
		if time.Since(began) >= time.Minute {
			p.t.Fatalf("%s did not happen; %d bytes got, %d of text, ready %v, %d resets", what, p.got, p.text.Len(), p.ready, p.resets)
		}
		p.cond.Wait()
	}
}

var ample = ahp.FlowLimits{WindowBytes: 100 << 10, MaximumFrameBytes: 16 << 10, MaximumMessageBytes: 1 << 20}

func TestWindowedDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 16 << 20})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		before := strings.Repeat("before \"\\ 🙂é目\u2028\r\n", 4000)
		for at := 0; at < len(before); {
			end := min(at+30<<10, len(before))
			for !utf8.RuneStart((before + "x")[end]) {
				end--
			}
			owner.output(uri, before[at:end], int64(at))
			at = end
		}
		owner.ping()
		p := newPane(t, h, "pane", true)
		r := p.follow(uri, ample)
		if r.Snapshot != nil || r.FlowControl == nil || r.FlowControl.ClientReceive != ample || r.FlowControl.HostReceive.WindowBytes <= 0 {
			t.Fatalf("subscribe is answered %+v", r)
		}
		p.await("the beginning", func() bool { return p.ready })
		after := strings.Repeat("after 🙂 \x1b[31m\"red\"\x1b[0m\r\n", 20000)
		for at := 0; at < len(after); {
			end := min(at+16<<10, len(after))
			for !utf8.RuneStart((after + "x")[end]) {
				end--
			}
			owner.output(uri, after[at:end], int64(len(before)+at))
			at = end
			owner.ping()
		}
		p.await("everything", func() bool { return p.text.String() == before+after })
		p.mu.Lock()
		if p.resyncs != 0 || p.frames < int(p.got/p.limits.MaximumFrameBytes) {
			t.Errorf("%d resynchronisations, %d bytes in %d frames", p.resyncs, p.got, p.frames)
		}
		p.mu.Unlock()
		three := int64(3)
		owner.dispatch(uri, ahp.TerminalExited{ExitCode: &three})
		p.await("the exit", func() bool { return p.state.Lifecycle.Exited() })
	})
}

// Who gives no credit is sent no more than was agreed, slows nobody, and is brought up to date when it does.
func TestWindowWithoutCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 64 << 10, Scrollback: 256 << 10})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		v := connect(t, h, "healthy", viewOptions{subs: []string{uri}})
		p := newPane(t, h, "pane", false)
		p.follow(uri, ample)
		p.await("the beginning", func() bool { return p.ready })
		began := time.Now()
		sent := int64(0)
		for n := range 1000 {
			line := fmt.Sprintf("%6d %s\r\n", n, strings.Repeat("x", 1000))
			owner.output(uri, line, sent)
			sent += int64(len(line))
			owner.await("the acknowledgement", func() bool { return owner.acks[uri] == sent })
		}
		v.awaitText(uri, "\r\n")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the owner was held for %v by an observer that gives no credit", took)
		}
		p.mu.Lock()
		if p.got >= ample.WindowBytes+ample.MaximumMessageBytes || p.got < ample.WindowBytes {
			t.Errorf("%d bytes were sent without credit", p.got)
		}
		p.generous = true
		p.giveLocked(p.got)
		p.mu.Unlock()
		last := fmt.Sprintf("%6d %s\r\n", 999, strings.Repeat("x", 1000))
		p.await("the end", func() bool { return strings.HasSuffix(p.text.String(), last) })
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.resyncs < 1 || !strings.Contains(p.text.String(), "bytes skipped") { // where the machine is busy, it falls behind before its window is full, too
			t.Errorf("%d resynchronisations; the text begins with %.200q", p.resyncs, p.text.String())
		}
	})
}

func TestOffersOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		p := newPane(t, h, "pane", true)
		for name, limits := range map[string]ahp.FlowLimits{
			"short messages": {WindowBytes: 1 << 20, MaximumFrameBytes: 1 << 20, MaximumMessageBytes: 1000},
			"short frames":   {WindowBytes: 1 << 20, MaximumFrameBytes: 100, MaximumMessageBytes: 1 << 20},
		} {
			if r := p.follow(uri, limits); r.FlowControl != nil || r.Snapshot == nil {
				t.Errorf("%s: %+v, want ordinary delivery", name, r)
			}
		}
		if r := p.follow(uri, ahp.FlowLimits{WindowBytes: 1 << 52, MaximumFrameBytes: 1 << 52, MaximumMessageBytes: 1 << 52}); r.FlowControl == nil ||
			r.FlowControl.ClientReceive.MaximumFrameBytes > 1<<20 || r.FlowControl.ClientReceive.WindowBytes > 1<<30 {
			t.Errorf("a boundless offer: %+v", r.FlowControl)
		}
		for _, offer := range []string{`{}`, `{"receive":{"windowBytes":0,"maximumFrameBytes":1,"maximumMessageBytes":1}}`,
			`{"receive":{"windowBytes":1,"maximumFrameBytes":-1,"maximumMessageBytes":1}}`,
			`{"receive":{"windowBytes":1,"maximumFrameBytes":1,"maximumMessageBytes":9007199254740992}}`, `{"receive":{"windowBytes":1.5}}`, `7`} {
			err := p.peer.Call(t.Context(), ahp.MethodSubscribe, jsonRaw(`{"channel":"`+uri+`","flowControl":`+offer+`}`), nil)
			if code(err) != -32602 {
				t.Errorf("flowControl %s: %v, want -32602", offer, err)
			}
		}
		var root ahp.SubscribeResult
		if err := p.peer.Call(t.Context(), ahp.MethodSubscribe, ahp.SubscribeParams{Channel: ahp.RootURI, FlowControl: &ahp.FlowOffer{Receive: ample}}, &root); err != nil ||
			root.FlowControl != nil || root.Snapshot == nil {
			t.Errorf("the root: %+v, %v, want ordinary delivery", root, err)
		}
		var again ahp.ReconnectResult
		other := connect(t, h, "pane", viewOptions{noInit: true})
		params := ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "pane", Subscriptions: []string{ahp.RootURI, uri},
			Windows: &ahp.WindowsToResume{Items: []ahp.WindowToResume{{Channel: uri}}}}
		if err := other.call(ahp.MethodReconnect, params, &again); err != nil || again.Type != ahp.ReconnectSnapshot || len(again.Snapshots) != 1 {
			t.Errorf("reconnected: %+v, %v; want a snapshot of the root alone", again, err)
		}
	})
}

// What breaks the rules ends the subscription, with a word, and nothing else.
func TestBrokenWindows(t *testing.T) {
	frame := func(data string, final bool) ahp.FrameParams {
		return ahp.FrameParams{Channel: uri, Data: data, Final: final}
	}
	for name, test := range map[string]struct {
		method string
		params []any
	}{
		"credit for what was not sent": {ahp.MethodChannelCredit, []any{ahp.CreditParams{Channel: uri, ConsumedBytes: 1 << 40}}},
		"negative credit":              {ahp.MethodChannelCredit, []any{jsonRaw(`{"channel":"` + uri + `","consumedBytes":-1}`)}},
		"an endless message":           {ahp.MethodChannelFrame, []any{frame(strings.Repeat("x", 300<<10), false), frame(strings.Repeat("x", 300<<10), false)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{})
				owner := connect(t, h, "laptop", viewOptions{resume: true})
				owner.create(uri)
				p := newPane(t, h, "pane", true)
				p.follow(uri, ample)
				p.await("the beginning", func() bool { return p.ready })
				for _, params := range test.params {
					if err := p.peer.Notify(t.Context(), test.method, params); err != nil {
						t.Fatal(err)
					}
				}
				p.await("the reset", func() bool { return p.resets == 1 })
				owner.output(uri, "after", 0)
				owner.ping()
				p.follow(uri, ample)
				p.await("another beginning", func() bool { return p.text.String() == "after" })
			})
		})
	}
}

// The owner of a terminal may follow it in a window too, and then what it dispatches comes in frames, for which it is given credit.
func TestFramesFromTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		p := newPane(t, h, "laptop", true)
		if err := p.peer.Call(t.Context(), ahp.MethodCreateTerminal, clientTerminal(uri, "laptop"), nil); err != nil {
			t.Fatal(err)
		}
		p.follow(uri, ample)
		v := connect(t, h, "viewer", viewOptions{subs: []string{uri}})
		send := func(message string) {
			text := []rune(message)
			for at := 0; at < len(text); at += 40 {
				end := min(at+40, len(text))
				if err := p.peer.Notify(t.Context(), ahp.MethodChannelFrame, ahp.FrameParams{Channel: uri, Data: string(text[at:end]), Final: end == len(text)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		params, err := json.Marshal(ahp.DispatchParams{Channel: uri, ClientSeq: 1, Action: ahp.AppendAction(nil, ahp.TerminalOutput{Data: "from 🙂 frames\r\n"})})
		if err != nil {
			t.Fatal(err)
		}
		message := `{"jsonrpc":"2.0","method":"dispatchAction","params":` + string(params) + `}`
		send(message)
		v.awaitText(uri, "from 🙂 frames\r\n")
		p.await("credit", func() bool { return p.credited == units(message) })
		// Of another channel, or no message at all: nothing happens, and credit is given all the same.
		foreign := strings.ReplaceAll(message, uri, "ahp-terminal:/other")
		send(foreign)
		send("nonsense")
		p.await("more credit", func() bool { return p.credited == units(message)+units(foreign)+units("nonsense") })
		send(`{"jsonrpc":"2.0","method":"unsubscribe","params":{"channel":"` + uri + `"}}`)
	})
}

// FuzzFragment: pieces are whole characters, fit when they are quoted, and add up.
func FuzzFragment(f *testing.F) {
	f.Add(`{"a":"b\\n🙂é\u2028"}`, 7)
	f.Add(strings.Repeat(`"\`, 100), 20)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if !utf8.ValidString(text) {
			return
		}
		limit = 6 + int(uint(limit)%1000)
		if got, want := host.FlowBytes([]byte(text)), units(text); got != want {
			t.Fatalf("%q has %d bytes, want %d", text, got, want)
		}
		rest := text
		for rest != "" {
			n := host.Fragment([]byte(rest), limit)
			if n <= 0 || !utf8.ValidString(rest[:n]) {
				t.Fatalf("a piece of %d bytes of %q", n, rest)
			}
			quoted := string(jsonspan.AppendQuoteString(nil, rest[:n]))
			if got := units(quoted[1:len(quoted)-1]) / 2; got > int64(limit) {
				t.Fatalf("%q is quoted as %d units, at most %d fit", rest[:n], got, limit)
			}
			rest = rest[n:]
		}
	})
}

// Messages that never become whole are bounded for a connection, however many channels they are about.
func TestPartialMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		p := newPane(t, h, "pane", false)
		p.mu.Lock()
		p.deaf = true
		p.mu.Unlock()
		for n := range 20 {
			other := fmt.Sprint("ahp-terminal:/many-", n)
			owner.create(other)
			p.follow(other, ample)
			if err := p.peer.Notify(t.Context(), ahp.MethodChannelFrame, ahp.FrameParams{Channel: other, Data: strings.Repeat("x", 300<<10)}); err != nil {
				t.Fatal(err)
			}
		}
		p.await("resets", func() bool { return p.resets == 20-(4<<20)/(300<<10) })
	})
}
