package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/jsonrpc"
)

type jsonRaw = json.RawMessage

// viewer is a client of the host for tests: it keeps its messages and reduces them as AHP
// demands.
type viewer struct {
	t    testing.TB
	id   string
	peer *jsonrpc.Peer
	done chan struct{} // closed when the connection has ended

	result ahp.InitializeResult

	mu        sync.Mutex
	cond      *sync.Cond
	envelopes []ahp.Envelope
	lastSeq   int64
	acks      map[string]int64
	observers map[string]int64
	watchers  map[string][]ahp.WatchersParams
	ackCount  int
	root      ahp.RootState
	states    map[string]*ahp.TerminalState
	from      map[string]int64 // serverSeq of the snapshot
	clientSeq int64
	keep      bool // keep the envelopes
	text      map[string]*strings.Builder
	talks     map[string]*talk
	notices   []string                 // notifications about sessions: "method URI"
	runs      func(ahp.RunsParams) any // answers the host's questions about runs; nil refuses them
}

// viewOptions are how a viewer connects.
type viewOptions struct {
	versions []string
	resume   bool
	runs     bool // it says that it answers questions about runs
	subs     []string
	noInit   bool
}

// testHost is a host that is closed when the test ends.
func testHost(t testing.TB, o host.Options) *host.Host {
	h := host.New(o)
	t.Cleanup(h.Close)
	return h
}

// steadyHost is testHost outside of bubbles: timeouts do not expire because the machine
// stands still.
func steadyHost(t testing.TB, o host.Options) *host.Host {
	for _, limit := range []*time.Duration{&o.Grace, &o.StallTime, &o.SilenceTime, &o.HandshakeTime, &o.ArrivalTime, &o.HoldTime} {
		*limit = cmp.Or(*limit, time.Hour)
	}
	return testHost(t, o)
}

// connect opens an in-memory connection and initializes it.
func connect(t testing.TB, h *host.Host, id string, o viewOptions) *viewer {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	v := newViewer(t, near, id)
	t.Cleanup(func() { v.close(); <-served })
	if !o.noInit {
		v.initialize(o)
	}
	return v
}

// newViewer runs a client on ch.
func newViewer(t testing.TB, ch jsonrpc.Channel, id string) *viewer {
	v := &viewer{t: t, id: id, done: make(chan struct{}), acks: map[string]int64{}, observers: map[string]int64{}, watchers: map[string][]ahp.WatchersParams{}, states: map[string]*ahp.TerminalState{},
		from: map[string]int64{}, text: map[string]*strings.Builder{}, talks: map[string]*talk{}, keep: true}
	v.cond = sync.NewCond(&v.mu)
	v.peer = jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: v, MaxMessage: 16 << 20})
	go func() {
		defer close(v.done)
		_ = v.peer.Run(context.Background())
		v.mu.Lock()
		v.cond.Broadcast()
		v.mu.Unlock()
	}()
	return v
}

func (v *viewer) close() {
	_ = v.peer.Close()
	<-v.done
}

func (v *viewer) initialize(o viewOptions) {
	v.t.Helper()
	p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: o.versions, ClientID: v.id, InitialSubscriptions: o.subs}
	if p.ProtocolVersions == nil {
		p.ProtocolVersions = ahp.Versions()
	}
	if o.resume {
		p.Meta = ahp.NewClientMeta()
	}
	if o.runs {
		p.Meta = ahp.ClientMarker{Runs: true}.Meta()
	}
	if err := v.call(ahp.MethodInitialize, p, &v.result); err != nil {
		v.t.Fatalf("initialize as %s: %v", v.id, err)
	}
	for _, s := range v.result.Snapshots {
		v.load(s)
	}
}

func (v *viewer) call(method string, params, result any) error {
	return v.peer.Call(context.Background(), method, params, result)
}

// code is the JSON-RPC code of an error, 0 for nil.
func code(err error) int64 {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return int64(e.Code)
	}
	if err != nil {
		return -1
	}
	return 0
}

func (v *viewer) subscribe(uri string) error {
	var r ahp.SubscribeResult
	err := v.call(ahp.MethodSubscribe, ahp.SubscribeParams{Channel: uri}, &r)
	if err == nil {
		v.load(*r.Snapshot)
	}
	return err
}

// load takes a snapshot. Envelopes that came before it was read are applied if they are
// newer.
func (v *viewer) load(s ahp.Snapshot) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.from[s.Resource] = s.FromSeq
	if s.Resource == ahp.RootURI {
		if err := json.Unmarshal(s.State, &v.root); err != nil {
			v.t.Errorf("root snapshot: %v", err)
		}
	} else if isTalk(s.Resource) {
		v.talks[s.Resource] = loadTalk(v.t, s)
	} else {
		var st ahp.TerminalState
		if err := json.Unmarshal(s.State, &st); err != nil {
			v.t.Errorf("snapshot of %s: %v\n%s", s.Resource, err, s.State)
		}
		v.states[s.Resource] = &st
		v.text[s.Resource] = &strings.Builder{}
		v.text[s.Resource].WriteString(st.Text())
	}
	for _, e := range v.envelopes {
		if e.Channel == s.Resource && e.ServerSeq > s.FromSeq {
			v.reduce(e)
		}
	}
	v.cond.Broadcast()
}

// Handle implements jsonrpc.Handler.
func (v *viewer) Handle(_ context.Context, r *jsonrpc.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.cond.Broadcast()
	switch r.Method {
	case ahp.MethodRuns:
		var p ahp.RunsParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			v.t.Errorf("runs %s: %v", r.Params, err)
		}
		p.Arguments = slices.Clone(p.Arguments)
		answer := v.runs
		go func() { // like a machine, which answers while it reads on
			if answer == nil {
				_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method))
			} else if a := answer(p); a != nil {
				_ = r.Reply(a)
			}
		}()
	case ahp.MethodAck:
		var p ahp.AckParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			v.t.Errorf("ack %s: %v", r.Params, err)
		}
		v.acks[p.Channel] = p.Applied
		v.ackCount++
	case ahp.MethodObservers:
		var p ahp.ObserversParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			v.t.Errorf("observers %s: %v", r.Params, err)
		}
		v.observers[p.Channel] = p.Count
	case ahp.MethodWatchers:
		var p ahp.WatchersParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			v.t.Errorf("watchers %s: %v", r.Params, err)
		}
		v.watchers[p.Channel] = append(v.watchers[p.Channel], p)
	case ahp.MethodAction:
		var e ahp.Envelope
		if err := json.Unmarshal(r.Params, &e); err != nil {
			v.t.Errorf("envelope %s: %v", r.Params, err)
		}
		if e.ServerSeq <= v.lastSeq {
			v.t.Errorf("%s: serverSeq %d after %d", v.id, e.ServerSeq, v.lastSeq)
		}
		v.lastSeq = e.ServerSeq
		if v.keep {
			v.envelopes = append(v.envelopes, e)
		}
		if from, ok := v.from[e.Channel]; ok && e.ServerSeq > from {
			v.reduce(e)
		}
	case ahp.MethodSessionAdded, ahp.MethodSessionRemoved, ahp.MethodSessionSummaryChanged:
		v.notices = append(v.notices, notice(v.t, r))
	default:
		v.t.Errorf("unexpected %s", r.Method)
	}
}

func (v *viewer) reduce(e ahp.Envelope) {
	if e.Rejected() {
		return
	}
	a, err := ahp.DecodeAction(e.Action)
	if err != nil {
		v.t.Errorf("action %s: %v", e.Action, err)
		return
	}
	if e.Channel == ahp.RootURI {
		v.root = ahp.ReduceRoot(v.root, a)
		return
	}
	if s := v.talks[e.Channel]; s != nil {
		s.reduce(a)
		return
	}
	st := v.states[e.Channel]
	if st == nil {
		return
	}
	switch a := a.(type) { // text is kept aside: the reducer copies the tail part each time
	case ahp.TerminalData:
		v.text[e.Channel].WriteString(a.Data)
		if !v.keep {
			return
		}
	case ahp.TerminalCleared:
		v.text[e.Channel].Reset()
	}
	next := ahp.ReduceTerminal(*st, a)
	*st = next
}

// await waits until cond, which is called with the lock, holds.
func (v *viewer) await(what string, cond func() bool) {
	v.t.Helper()
	late := time.AfterFunc(patience, func() { v.mu.Lock(); v.cond.Broadcast(); v.mu.Unlock() })
	defer late.Stop()
	deadline := time.Now().Add(patience)
	v.mu.Lock()
	defer v.mu.Unlock()
	for !cond() {
		if !time.Now().Before(deadline) {
			v.t.Fatalf("%s: %s did not happen; root %+v", v.id, what, v.root)
		}
		v.cond.Wait()
	}
}

// awaitText waits until the text of a terminal ends with want.
func (v *viewer) awaitText(uri, want string) {
	v.t.Helper()
	v.await("text "+want, func() bool { b := v.text[uri]; return b != nil && strings.HasSuffix(b.String(), want) })
}

// received are the envelopes that it has kept so far, and the serverSeq of the last that
// has come.
func (v *viewer) received() (all []ahp.Envelope, last int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.envelopes), v.lastSeq
}

// catalogue is the root channel as the viewer knows it. Reducers change no state in
// place, so it does not change.
func (v *viewer) catalogue() ahp.RootState {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.root
}

func (v *viewer) state(uri string) ahp.TerminalState {
	v.mu.Lock()
	defer v.mu.Unlock()
	if st := v.states[uri]; st != nil {
		return st.Clone()
	}
	return ahp.TerminalState{}
}

func (v *viewer) textOf(uri string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text[uri].String()
}

// forget stops the viewer from keeping envelopes and parts: for much output.
func (v *viewer) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keep = false
}

// create announces a client-executed terminal.
func (v *viewer) create(uri string) {
	v.t.Helper()
	if err := v.call(ahp.MethodCreateTerminal, clientTerminal(uri, v.id), nil); err != nil {
		v.t.Fatalf("create %s: %v", uri, err)
	}
}

func clientTerminal(uri, owner string) ahp.CreateTerminalParams {
	cols, rows := int64(80), int64(24)
	return ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(owner), Name: "build", Cwd: "file:///src",
		Cols: &cols, Rows: &rows, ExecutionTarget: ahp.TargetClient}
}

// dispatch sends an action and returns its clientSeq.
func (v *viewer) dispatch(uri string, a ahp.Action) int64 {
	v.t.Helper()
	return v.dispatchRaw(uri, ahp.AppendAction(nil, a))
}

func (v *viewer) dispatchRaw(uri string, action []byte) int64 {
	v.t.Helper()
	v.mu.Lock()
	v.clientSeq++
	seq := v.clientSeq
	v.mu.Unlock()
	p := ahp.DispatchParams{Channel: uri, ClientSeq: seq, Action: action}
	if err := v.peer.Notify(context.Background(), ahp.MethodDispatchAction, p); err != nil {
		v.t.Logf("%s: dispatch: %v", v.id, err)
	}
	return seq
}

// output dispatches text, at an offset unless that is negative.
func (v *viewer) output(uri, text string, offset int64) {
	v.t.Helper()
	a := ahp.TerminalOutput{Data: text}
	if offset >= 0 {
		a.Offset = &offset
	}
	v.dispatch(uri, a)
}

// ping is a barrier: earlier dispatches have been handled.
func (v *viewer) ping() {
	v.t.Helper()
	if err := v.call(ahp.MethodPing, ahp.PingParams{Channel: ahp.RootURI}, nil); err != nil {
		v.t.Fatalf("ping: %v", err)
	}
}

// answer waits for the envelope that answers a dispatch of this viewer's.
func (v *viewer) answer(seq int64) ahp.Envelope {
	v.t.Helper()
	var found ahp.Envelope
	v.await("an answer", func() bool {
		for _, e := range v.envelopes {
			if e.Origin != nil && e.Origin.ClientID == v.id && e.Origin.ClientSeq == seq {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

func commandExecuted(n int) ahp.Action {
	return ahp.TerminalCommandExecuted{CommandID: fmt.Sprint(n), CommandLine: "make", Timestamp: int64(n)}
}

func commandFinished(n int) ahp.Action { return ahp.TerminalCommandFinished{CommandID: fmt.Sprint(n)} }
