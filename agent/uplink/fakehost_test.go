package uplink_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// fakeHost is a host that does as little as its options say. Unlike package host it may
// follow the bare proposal, misunderstand it, or be hostile.
type fakeHost struct {
	marker ahp.Meta            // of the answer to initialize
	target ahp.ExecutionTarget // in snapshots
	mute   bool                // answers nothing after initialize
	again  bool                // its owner may announce a terminal again
	speaks string              // version, "" = 0.9.0
	gone   jsonrpc.Code        // the code for a channel that does not exist, 0 = CodeNotFound
	deaf   int                 // outputs that it still refuses

	late map[string]chan struct{}  // by method: answered when this is closed
	fail map[string]*jsonrpc.Error // by method: answered with this
	odd  map[string]any            // a method is answered with this result

	open net.Conn // the last stream; owned by the test

	mu       sync.Mutex
	peer     *jsonrpc.Peer // newest connection
	created  []string
	former   []string    // of those created, "" for none
	born     []time.Time // as each announcement said, of all terminals
	ended    time.Time   // as the last exit said
	disposed []string
	text     map[string]string // by URI
	cleared  int
	exited   map[string]*int64
	states   []ahp.StateParams
	pings    int
	most     int // most bytes of text between two pings
	since    int
}

func (f *fakeHost) serve(ctx context.Context, ch jsonrpc.Channel) {
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: f, Taken: ahp.MethodTaken})
	f.mu.Lock()
	f.peer = p
	if f.text == nil {
		f.text, f.exited = map[string]string{}, map[string]*int64{}
	}
	f.mu.Unlock()
	p.Run(ctx)
}

func (f *fakeHost) Handle(_ context.Context, r *jsonrpc.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mute && r.Method != ahp.MethodInitialize {
		return
	}
	if e := f.fail[r.Method]; e != nil {
		r.ReplyError(e)
		return
	}
	if v, ok := f.odd[r.Method]; ok {
		r.Reply(v)
		return
	}
	switch r.Method {
	case ahp.MethodInitialize:
		r.Reply(ahp.InitializeResult{ProtocolVersion: cmp.Or(f.speaks, "0.9.0"), Meta: f.marker})
	case ahp.MethodPing:
		f.pings++
		f.since = 0
		r.Reply(nil)
	case ahp.MethodCreateTerminal:
		f.create(r)
	case ahp.MethodSubscribe:
		var p ahp.SubscribeParams
		ahp.DecodeParams(r.Params, &p)
		if !slices.Contains(f.created, p.Channel) {
			r.ReplyError(jsonrpc.Errorf(cmp.Or(f.gone, ahp.CodeNotFound), "no such channel"))
			return
		}
		state, _ := json.Marshal(ahp.TerminalState{Title: "x", Claim: ahp.ClientClaim("laptop"), ExecutionTarget: f.target})
		r.Reply(ahp.SubscribeResult{Snapshot: &ahp.Snapshot{Resource: p.Channel, State: state}})
	case ahp.MethodDisposeTerminal:
		var p ahp.DisposeTerminalParams
		ahp.DecodeParams(r.Params, &p)
		f.disposed = append(f.disposed, p.Channel)
		f.reply(r)
	case ahp.MethodDispatchAction:
		f.dispatched(r.Params)
	case ahp.MethodState:
		var p ahp.StateParams
		ahp.DecodeParams(r.Params, &p)
		f.states = append(f.states, p)
	default:
		r.ReplyError(jsonrpc.MethodNotFound(r.Method))
	}
}

func (f *fakeHost) create(r *jsonrpc.Request) {
	var p ahp.CreateTerminalParams
	ahp.DecodeParams(r.Params, &p)
	f.born = append(f.born, ahp.FindTime(p.Meta, ahp.CreatedKey))
	for _, uri := range f.created {
		if uri == p.Channel && f.again {
			f.reply(r)
			return
		}
		if uri == p.Channel {
			r.ReplyError(jsonrpc.Errorf(ahp.CodeAlreadyExists, "it exists"))
			return
		}
	}
	f.created, f.former = append(f.created, p.Channel), append(f.former, ahp.FindFormer(p.Meta))
	f.reply(r)
}

// reply answers with nothing, now or later.
func (f *fakeHost) reply(r *jsonrpc.Request) {
	late := f.late[r.Method]
	if late == nil {
		r.Reply(nil)
		return
	}
	go func() {
		<-late
		r.Reply(nil)
	}()
}

// delay makes the host answer a method only after the function it returns was called.
func (f *fakeHost) delay(method string) (answer func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := make(chan struct{})
	f.late = map[string]chan struct{}{method: late}
	return func() {
		locked(&f.mu, func() { f.late = nil })
		close(late)
		synctest.Wait()
	}
}

// living are the terminals created and not disposed of.
func (f *fakeHost) living() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.created), func(uri string) bool { return slices.Contains(f.disposed, uri) })
}

func (f *fakeHost) dispatched(params []byte) {
	var p ahp.DispatchParams
	ahp.DecodeParams(params, &p)
	a, _ := ahp.DecodeAction(p.Action)
	switch a := a.(type) {
	case ahp.TerminalOutput:
		if f.deaf > 0 {
			f.deaf--
			reason := "busy"
			f.peer.Notify(context.Background(), ahp.MethodAction, ahp.Envelope{Channel: p.Channel, Action: p.Action, ServerSeq: 1,
				RejectionReason: &reason, Origin: &ahp.Origin{ClientID: "laptop", ClientSeq: p.ClientSeq}})
			return
		}
		f.text[p.Channel] += a.Data
		f.since += len(a.Data)
		f.most = max(f.most, f.since)
	case ahp.TerminalCleared:
		f.cleared++
		f.text[p.Channel] = ""
	case ahp.TerminalExited:
		f.exited[p.Channel], f.ended = a.ExitCode, ahp.FindTime(a.Meta, ahp.ExitedKey)
	}
}

// say sends an envelope about a terminal as coming from somebody else.
func (f *fakeHost) say(t *testing.T, uri string, a ahp.Action) {
	t.Helper()
	f.mu.Lock()
	p := f.peer
	f.mu.Unlock()
	must.Do(t, p.Notify(t.Context(), ahp.MethodAction, ahp.Envelope{
		Channel: uri, Action: ahp.AppendAction(nil, a), ServerSeq: 1, Origin: &ahp.Origin{ClientID: "mallory", ClientSeq: 1},
	}))
	synctest.Wait()
}

// uri is the only terminal created so far, or the last one.
func (f *fakeHost) uri(t *testing.T) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.created) == 0 {
		t.Fatal("no terminal was created")
	}
	return f.created[len(f.created)-1]
}

// fakeWorld is a laptop that meets f instead of a real host.
func fakeWorld(t *testing.T, f *fakeHost, change func(*uplink.Options)) *world {
	w := newWorld(t, host.Options{}, func(o *uplink.Options) {
		if change != nil {
			change(o)
		}
	})
	locked(&w.mu, func() { w.serve = f.serve })
	w.cut(false)
	pass(2 * time.Second)
	return w
}

func literal(o *uplink.Options) { o.AssumeClientTerminals = true }

func TestNothingIsCreatedAtAHostWithoutTheMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, nil)
		_, child := w.spawn(term.Spec{})
		child.Print("secret")
		time.Sleep(time.Hour)
		if s := w.link.Status(); s.State != uplink.StateUnsupported && s.State != uplink.StateConnecting || len(f.created) != 0 || len(f.text) != 0 {
			t.Errorf("state %s, created %v, text %v; want unsupported and nothing", s.State, f.created, f.text)
		}
	})
}

// counts is how many terminals were created and disposed of.
func (f *fakeHost) counts() (created, disposed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.created), len(f.disposed)
}

func TestAShellThatTheHostStartedIsDisposedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ""} // it ignored executionTarget
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{})
		child.Print("secret")
		time.Sleep(12 * time.Hour)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.created) != 1 || len(f.disposed) != 1 || f.created[0] != f.disposed[0] {
			t.Errorf("created %v, disposed of %v; want one, disposed of, and no other for hours", f.created, f.disposed)
		}
		if len(f.text) != 0 {
			t.Errorf("the host got %v", f.text)
		}
		if s := w.link.Status(); s.State != uplink.StateUnsupported || !strings.Contains(s.Err.Error(), "shell of its own") {
			t.Errorf("status = %+v", s)
		}
	})
}

// One terminal tries out whether the host understands. Its shell is given time to print
// before it is disposed of.
func TestOneShellIsTriedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ""}
		w := fakeWorld(t, f, literal)
		w.cut(true)
		for range 8 {
			w.spawn(term.Spec{})
		}
		w.mend()
		w.link.Nudge()
		synctest.Wait()
		pass(2240 * time.Millisecond)
		if created, disposed := f.counts(); created != 1 || disposed != 0 {
			t.Errorf("at first: created %d, disposed of %d; want one that has time", created, disposed)
		}
		pass(20 * time.Millisecond)
		created, _ := f.counts()
		if s := w.link.Status(); created != 1 || len(f.living()) != 0 || s.State != uplink.StateUnsupported || time.Until(s.NextRetry) < 23*time.Hour {
			t.Errorf("then: created %d, living %v, %+v", created, f.living(), s)
		}
		w.link.Nudge()
		synctest.Wait()
		f.say(t, f.uri(t), ahp.TerminalData{Data: "$ "})
		time.Sleep(260 * time.Millisecond) // sooner than that
		synctest.Wait()
		if created, _ := f.counts(); created != 2 || len(f.living()) != 0 {
			t.Errorf("after another attempt: created %d, living %v", created, f.living())
		}
		f.mu.Lock()
		f.target = ahp.TargetClient // somebody has upgraded it
		f.mu.Unlock()
		w.link.Nudge()
		w.online()
		if len(f.living()) != 8 {
			t.Errorf("a host that understands has %d terminals, want 8", len(f.living()))
		}
	})
}

// A connection that ends while the host starts a shell leaves none: the next one disposes
// of it, whatever the host answers then.
func TestAShellOfALostAttemptIsDisposedOf(t *testing.T) {
	for name, again := range map[string]*jsonrpc.Error{"another is made": nil, "it is refused": jsonrpc.Errorf(-32603, "it exists")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHost{target: ""}
				w := fakeWorld(t, f, literal)
				answer := f.delay(ahp.MethodCreateTerminal)
				w.spawn(term.Spec{})
				synctest.Wait()
				w.cut(true)
				answer()
				f.mu.Lock()
				if again != nil {
					f.fail = map[string]*jsonrpc.Error{ahp.MethodCreateTerminal: again}
				}
				f.mu.Unlock()
				w.mend()
				w.link.Nudge()
				time.Sleep(time.Minute)
				if alive := f.living(); len(f.created) == 0 || len(alive) != 0 {
					t.Errorf("created %v, the host still has %v", f.created, alive)
				}
			})
		})
	}
}

// A host's text about its own program and files stays out of status.
func TestInnardsOfAHostAreNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "Error: cannot start file:///opt/code/out/server.js:3 for /home/dev/ws\n    at spawn (/opt/code/out/server.js:1:2)"
		f := &fakeHost{target: "", fail: map[string]*jsonrpc.Error{ahp.MethodCreateTerminal: jsonrpc.Errorf(-32603, "%s", text)}}
		w := fakeWorld(t, f, literal)
		w.spawn(term.Spec{})
		time.Sleep(time.Minute)
		if got := w.link.Status().Terminals[0].Problem; !strings.Contains(got, "Error: cannot start … for …") || strings.ContainsAny(got, "/") {
			t.Errorf("status says %q", got)
		}
	})
}

func TestTheBareProposalIsServedBehindPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{OnSlow: term.Hold})
		want := ""
		for range 300 {
			child.Print(strings.Repeat("y", 1022) + "\r\n")
			want += strings.Repeat("y", 1022) + "\r\n"
		}
		child.End(4)
		synctest.Wait()
		uri := f.uri(t)
		if f.text[uri] != want || f.exited[uri] == nil || *f.exited[uri] != 4 {
			t.Errorf("%d bytes and exit %v, want %d and 4", len(f.text[uri]), f.exited[uri], len(want))
		}
		if f.pings == 0 || f.most > 64<<10 {
			t.Errorf("%d pings, up to %d bytes between two; want at most a window", f.pings, f.most)
		}
	})
}

// An exit without a code is -1 for hosts that take a terminal without a code for one that
// runs.
func TestAnExitWithoutACode(t *testing.T) {
	unknown := int64(-1)
	for version, want := range map[string]*int64{"0.7.0": &unknown, "0.8.0": &unknown, "0.9.0": nil, "1.0.0": nil} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeHost{target: ahp.TargetClient, speaks: version}
			w := fakeWorld(t, f, literal)
			w.mu.Lock()
			wire := (&lostHolder{killed: true}).dial()
			w.wrap = func(*testkit.Child) term.PTY { return wire }
			w.mu.Unlock()
			w.spawn(term.Spec{})
			wire.lose()
			time.Sleep(time.Second)
			got, told := f.exited[f.uri(t)]
			if !told || (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s: told %t, with %v", version, told, got)
			}
		})
	}
}

// A host without resume that has not noticed the loss has the old terminal still: it gets
// another one, and the old one goes.
func TestTheBareProposalAfterACutIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{})
		prints(child, "one ")
		before := f.uri(t)
		w.cut(false)
		child.Print("two")
		time.Sleep(5 * time.Second)
		after := f.uri(t)
		if f.text[after] != "one two" || len(f.created) != 2 || f.former[1] != before || !slices.Equal(f.living(), []string{after}) {
			t.Errorf("created %v, formerly %q, living %v, text %q; want everything once in a new one", f.created, f.former, f.living(), f.text[after])
		}
	})
}

// A host without resume that discovers late that the former connection is dead ends its
// terminals. That must not kill the person's programs. The end of a terminal that this
// connection has announced is a disposal, however soon it comes.
func TestALateLossIsNoDisposal(t *testing.T) {
	for name, loss := range map[string]func(*world){
		"connection": func(w *world) { w.cut(false) },
		"daemon":     func(w *world) { w.endLink(); w.newLink() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHost{target: ahp.TargetClient}
				w := fakeWorld(t, f, literal)
				holder := &lostHolder{} // a child in the daemon itself has no URI that the next daemon knows
				locked(&w.mu, func() { w.wrap = func(*testkit.Child) term.PTY { return holder.dial() } })
				h, _ := w.spawn(term.Spec{})
				synctest.Wait()
				before := f.uri(t)
				loss(w)
				time.Sleep(5 * time.Second)
				code := int64(-1)
				for range 2 {
					f.say(t, before, ahp.TerminalExited{ExitCode: &code})
					time.Sleep(time.Second)
				}
				if _, killed := holder.kept(); killed || h.Info().Exit != nil {
					t.Fatal("the child was killed")
				}
				if after := f.uri(t); after == before || len(f.created) != 2 || !slices.Equal(f.living(), []string{after}) {
					t.Errorf("created %v, living %v; want one new terminal", f.created, f.living())
				}
				f.say(t, f.uri(t), ahp.TerminalExited{ExitCode: &code})
				time.Sleep(time.Second)
				if _, killed := holder.kept(); !killed {
					t.Error("a disposal soon after the reconnection did not end the child")
				}
				time.Sleep(time.Hour)
				if len(f.created) != 2 {
					t.Errorf("it was announced again: %v", f.created)
				}
			})
		})
	}
}

// A terminal withdrawn while the link is down is removed from a host that has not noticed
// the loss.
func TestUnlendWhileTheLinkIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		h, _ := w.spawn(term.Spec{})
		synctest.Wait()
		w.cut(true)
		unlend(t, h)
		w.up()
		if alive := f.living(); len(alive) != 0 {
			t.Errorf("the host still has %v", alive)
		}
	})
}

func TestRefusedOutputIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.ClientTerminals{Version: 1}.Meta()}
		w := fakeWorld(t, f, nil)
		_, child := w.spawn(term.Spec{})
		reason := "not yours"
		f.peer.Notify(t.Context(), ahp.MethodAction, ahp.Envelope{Channel: f.uri(t), ServerSeq: 1, RejectionReason: &reason,
			Action: ahp.AppendAction(nil, ahp.TerminalOutput{}), Origin: &ahp.Origin{ClientID: "laptop", ClientSeq: 1}})
		synctest.Wait()
		prints(child, "more")
		if got := w.link.Status().Terminals[0].Problem; got != "the host refused terminal/output: not yours" {
			t.Errorf("problem = %q", got)
		}
		if got := f.text[f.uri(t)]; got != "" {
			t.Errorf("text %q was sent after the refusal", got)
		}
	})
}
