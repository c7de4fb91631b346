package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit/check"
	"tether/jsonrpc"
)

// rig is an observer with the fake hosts that it connects to, one per connection.
type rig struct {
	*client.Observer
	t       *testing.T
	prepare func(n int, h *fakeHost) error // before connection n, from 1; an error refuses it
	ran     chan error                     // the result of Run
	stop    func()                         // ends Run

	mu    sync.Mutex
	hosts []*fakeHost
	dials []time.Time
}

// observe starts an observer that follows these terminals.
func observe(t *testing.T, o client.ObserverOptions, prepare func(n int, h *fakeHost) error, follow ...string) *rig {
	r := &rig{t: t, prepare: prepare, ran: make(chan error, 1)}
	o.ClientID, o.Connect = "viewer", r.connect
	r.Observer = client.NewObserver(o)
	for _, uri := range follow {
		r.Follow(uri)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.ran <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-r.ran
	})
	synctest.Wait()
	return r
}

func (r *rig) connect(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
	h, ch := newHost(r.t)
	r.mu.Lock()
	r.hosts, r.dials = append(r.hosts, h), append(r.dials, time.Now())
	n := len(r.hosts)
	r.mu.Unlock()
	if err := r.prepare(n, h); err != nil {
		return nil, err
	}
	return client.ConnectChannel(ctx, ch, o)
}

// attempts returns when the connections were tried.
func (r *rig) attempts() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dials)
}

func (r *rig) host() *fakeHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hosts[len(r.hosts)-1]
}

// want compares all events that wait, as text.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	synctest.Wait()
	check.Equal(r.t, "events", lines, r.drain())
}

func (r *rig) drain() (lines []string) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		e, err := r.Next(done)
		if err != nil {
			return lines
		}
		lines = append(lines, text(e))
	}
}

func text(e client.Event) string {
	out := []string{e.Kind.String()}
	if e.Terminal != "" {
		out = append(out, strings.TrimPrefix(e.Terminal, ahp.TerminalScheme))
	}
	for _, i := range e.Terminals {
		out = append(out, i.Title)
	}
	switch {
	case e.State != nil:
		out = append(out, fmt.Sprintf("%s %q", e.State.Lifecycle.Status, e.State.Text()))
	case e.Data != nil:
		out = append(out, fmt.Sprintf("%q", e.Data))
	case e.Action != nil:
		out = append(out, string(ahp.AppendAction(nil, e.Action)))
	case e.Err != nil:
		out = append(out, e.Err.Error())
	}
	return strings.Join(out, " ")
}

func catalogue(uris ...string) ahp.RootState {
	s := ahp.RootState{Terminals: []ahp.TerminalInfo{}}
	for _, u := range uris {
		s.Terminals = append(s.Terminals, ahp.TerminalInfo{Resource: u, Title: strings.TrimPrefix(u, ahp.TerminalScheme), Claim: ahp.ClientClaim("c")})
	}
	return s
}

func listed(uris ...string) ahp.Action {
	return ahp.RootTerminalsChanged{Terminals: catalogue(uris...).Terminals}
}

// good answers initialize with the root state and the terminal uri.
func good(_ int, h *fakeHost) error {
	h.answer(ahp.MethodInitialize, ahp.InitializeResult{ProtocolVersion: "1.0.0", ServerSeq: 10, Snapshots: []ahp.Snapshot{
		snapshot(ahp.RootURI, 10, catalogue(uri)), snapshot(uri, 10, terminal("$ "))}})
	return nil
}

func TestObserverTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good, uri)
		r.want("up", "terminals 1", `resync 1 running "$ "`)
		h := r.host()
		state := terminal("$ ")
		for i, a := range []ahp.Action{
			ahp.TerminalCommandExecuted{CommandID: "a", CommandLine: "make", Timestamp: 5},
			ahp.TerminalData{Data: "ok\r\n"}, ahp.TerminalData{Data: "端末"},
			ahp.TerminalCommandFinished{CommandID: "a", ExitCode: new(int64(0))},
			ahp.TerminalTitleChanged{Title: "t"}, ahp.TerminalCwdChanged{Cwd: "file:///w"},
			ahp.TerminalResized{Cols: 100, Rows: 40}, ahp.TerminalInput{Data: "secret"},
			ahp.TerminalData{Data: "x"}, ahp.TerminalCleared{}, ahp.TerminalData{Data: "$"},
			ahp.UnknownAction{Kind: "terminal/future"}, ahp.RootActiveSessionsChanged{},
			ahp.TerminalExited{ExitCode: new(int64(3))},
		} {
			h.send(uri, int64(11+i), a)
			state = ahp.ReduceTerminal(state, a)
		}
		r.want(`action 1 {"type":"terminal/commandExecuted","commandId":"a","commandLine":"make","timestamp":5}`,
			`data 1 "ok\r\n端末"`, `action 1 {"type":"terminal/commandFinished","commandId":"a","exitCode":0}`,
			`action 1 {"type":"terminal/titleChanged","title":"t"}`, `action 1 {"type":"terminal/cwdChanged","cwd":"file:///w"}`,
			`action 1 {"type":"terminal/resized","cols":100,"rows":40}`, `data 1 "x"`, `action 1 {"type":"terminal/cleared"}`,
			`data 1 "$"`, `action 1 {"type":"terminal/exited","exitCode":3}`)
		got, ok := r.State(uri)
		if diff := cmp.Diff(string(state.MarshalFor("1.0.0")), string(got.MarshalFor("1.0.0"))); !ok || diff != "" {
			t.Errorf("state, known %v (-reducer +observer):\n%s", ok, diff)
		}
		h.send(ahp.RootURI, 30, listed(uri, "ahp-terminal:/2"))
		r.want("terminals 1 2")
		if n := len(r.Terminals()); n != 2 {
			t.Errorf("%d terminals are listed, want 2", n)
		}
		if _, ok := r.State("ahp-terminal:/2"); ok {
			t.Error("there is a state of a terminal that is not followed")
		}
	})
}

func TestObserverSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good, uri)
		r.drain()
		h := r.host()
		h.send(uri, 10, ahp.TerminalData{Data: "in the snapshot"})
		h.sendEnvelope(ahp.Envelope{Channel: uri, ServerSeq: 11, RejectionReason: new(""), Action: json.RawMessage(`{"type":"terminal/cleared"}`)})
		h.send(uri, 12, ahp.TerminalResized{Cols: 70_000, Rows: 1})
		h.sendEnvelope(ahp.Envelope{Channel: uri, ServerSeq: 13, Action: json.RawMessage(`{"type":"terminal/titleChanged","title":7}`)})
		h.sendEnvelope(ahp.Envelope{Channel: uri, ServerSeq: 14, Action: json.RawMessage(`{"type":"terminal/data"}`)})
		h.send(uri, 16, ahp.TerminalData{Data: "once"})
		h.send(uri, 16, ahp.TerminalData{Data: "once"})
		h.send("ahp-terminal:/other", 17, ahp.TerminalData{Data: "not asked for"})
		r.want(`data 1 "once"`)
	})
}

// Messages that arrive before the answer to subscribe are neither lost nor applied twice.
func TestObserverHoldsUntilTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good)
		r.drain()
		h := r.host()
		h.serve(ahp.MethodSubscribe, func([]byte) (any, error) {
			h.send("ahp-terminal:/2", 20, ahp.TerminalData{Data: "old"})
			h.send("ahp-terminal:/2", 21, ahp.TerminalData{Data: "new"})
			h.sendEnvelope(ahp.Envelope{Channel: "ahp-terminal:/2", ServerSeq: 22, Action: json.RawMessage(`{"type":"terminal/exited","exitCode":""}`)})
			s := snapshot("ahp-terminal:/2", 20, terminal("old"))
			return ahp.SubscribeResult{Snapshot: &s}, nil
		})
		r.Follow("ahp-terminal:/2")
		r.Follow("ahp-terminal:/2")
		r.want(`resync 2 running "oldnew"`)
		check.Equal(t, "asked", []string{"initialize", "subscribe"}, h.methods())
	})
}

// A screen that arrives before the answer to subscribe stays as it was, although the
// buffer that it arrived in is used for later messages.
func TestObserverHoldsScreens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good)
		r.drain()
		h := r.host()
		want := &ahp.Screen{Cols: 80, Rows: 24, Data: "drawn", Truncated: true}
		h.serve(ahp.MethodSubscribe, func([]byte) (any, error) {
			h.send("ahp-terminal:/2", 21, ahp.TerminalData{Data: "after a gap", Screen: want})
			for i := range int64(100) {
				h.send("ahp-terminal:/2", 22+i, ahp.TerminalData{Data: strings.Repeat("x", 200)})
			}
			s := snapshot("ahp-terminal:/2", 20, terminal(""))
			return ahp.SubscribeResult{Snapshot: &s}, nil
		})
		r.Follow("ahp-terminal:/2")
		synctest.Wait()
		s, _ := r.State("ahp-terminal:/2")
		check.Equal(t, "the screen", want.At(int64(len("after a gap"))), s.Meta.Screen)
	})
}

func TestObserverFloodBeforeTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, func(n int, h *fakeHost) error {
			_ = good(n, h)
			h.fail(ahp.MethodReconnect, ahp.CodeNotFound, nil)
			if n == 1 {
				h.serve(ahp.MethodSubscribe, func([]byte) (any, error) {
					go func() {
						text := `"` + strings.Repeat("x", 1<<19) + `"`
						for i := int64(20); h.peer.SendRaw(context.Background(), ahp.AppendData(nil, "ahp-terminal:/2", i, nil, []byte(text))) == nil; i++ {
						}
					}()
					<-h.peer.Done()
					return nil, errors.New("gone")
				})
			}
			return nil
		})
		r.drain()
		r.Follow("ahp-terminal:/2")
		synctest.Wait()
		lines := r.drain()
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "down subscribe: jsonrpc: connection closed") {
			t.Errorf("events %q, want the link to be given up", lines)
		}
	})
}

func TestObserverResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got ahp.ReconnectParams
		r := observe(t, client.ObserverOptions{}, func(n int, h *fakeHost) error {
			_ = good(n, h)
			h.fail(ahp.MethodSubscribe, ahp.CodeSessionNotFound, nil)
			h.serve(ahp.MethodReconnect, func(params []byte) (any, error) {
				return ahp.ReconnectResult{Type: ahp.ReconnectReplay, Actions: []ahp.Envelope{
					{Channel: uri, ServerSeq: 11, Action: json.RawMessage(`{"type":"terminal/data","data":"twice"}`)},
					{Channel: uri, ServerSeq: 12, Action: json.RawMessage(`{"type":"terminal/data","data":"missed"}`)},
				}}, ahp.DecodeParams(params, &got)
			})
			return nil
		}, uri)
		r.drain()
		r.host().send(uri, 11, ahp.TerminalData{Data: "twice"})
		r.want(`data 1 "twice"`)
		_ = r.host().peer.Close()
		r.want("down connection lost: EOF")
		time.Sleep(time.Second)
		r.host().send(uri, 13, ahp.TerminalData{Data: " and after"})
		r.want("up", `data 1 "missed and after"`)
		want := ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "viewer", LastSeenServerSeq: 11, Subscriptions: []string{ahp.RootURI, uri}}
		check.Equal(t, "reconnect", want, got)
	})
}

// The other answers to reconnect: a state, a terminal that is missing, or a refusal.
func TestObserverReconnects(t *testing.T) {
	tests := map[string]struct {
		prepare func(h *fakeHost)
		events  []string
		asked   []string
	}{
		"snapshots": {
			func(h *fakeHost) {
				h.answer(ahp.MethodReconnect, ahp.ReconnectResult{Type: ahp.ReconnectSnapshot, Snapshots: []ahp.Snapshot{
					snapshot(ahp.RootURI, 50, catalogue(uri)), snapshot(uri, 50, terminal("later"))}})
			},
			[]string{"up", "terminals 1", `resync 1 running "later"`}, []string{"reconnect"},
		},
		"one snapshot is missing": {
			func(h *fakeHost) {
				h.answer(ahp.MethodReconnect, ahp.ReconnectResult{Type: ahp.ReconnectSnapshot, Snapshots: []ahp.Snapshot{
					snapshot(ahp.RootURI, 50, catalogue(uri))}})
				s := snapshot(uri, 51, terminal("asked again"))
				h.answer(ahp.MethodSubscribe, ahp.SubscribeResult{Snapshot: &s})
			},
			[]string{"up", "terminals 1", `resync 1 running "asked again"`}, []string{"reconnect", "subscribe"},
		},
		"missing from the replay": {
			func(h *fakeHost) {
				h.answer(ahp.MethodReconnect, ahp.ReconnectResult{Type: ahp.ReconnectReplay, Missing: []string{uri}})
				h.fail(ahp.MethodSubscribe, ahp.CodeNotFound, nil)
			},
			[]string{"up", "gone 1"}, []string{"reconnect", "subscribe", "unsubscribe"},
		},
		"the host has begun anew": {
			func(h *fakeHost) {
				h.fail(ahp.MethodReconnect, ahp.CodeNotFound, nil)
				h.answer(ahp.MethodInitialize, ahp.InitializeResult{ProtocolVersion: "1.0.0", ServerSeq: 1, Snapshots: []ahp.Snapshot{
					snapshot(ahp.RootURI, 1, catalogue()), snapshot(uri, 1, terminal("anew"))}})
			},
			[]string{"up", "terminals", `resync 1 running "anew"`}, []string{"initialize"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := observe(t, client.ObserverOptions{}, func(n int, h *fakeHost) error {
					_ = good(n, h)
					if n > 1 {
						tt.prepare(h)
					}
					return nil
				}, uri)
				r.drain()
				_ = r.host().peer.Close()
				r.want("down connection lost: EOF")
				time.Sleep(time.Second)
				r.want(tt.events...)
				check.Equal(t, "asked", tt.asked, r.host().methods())
				r.host().send(uri, 100, ahp.TerminalData{Data: "!"})
				if _, followed := r.State(uri); followed {
					r.want(`data 1 "!"`)
				} else {
					r.want()
				}
			})
		})
	}
}

// After a host has answered reconnect with nonsense, the observer initializes again.
func TestObserverIsNotStuckWithReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, func(n int, h *fakeHost) error {
			h.answer(ahp.MethodReconnect, "nonsense")
			return good(n, h)
		}, uri)
		r.drain()
		_ = r.host().peer.Close()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		check.Equal(t, "after minutes: asked", []string{ahp.MethodInitialize}, r.host().methods())
	})
}

func TestObserverGone(t *testing.T) {
	tests := map[string]struct {
		prepare func(h *fakeHost)
		want    string
	}{
		"as most hosts say it": {func(h *fakeHost) { h.fail(ahp.MethodSubscribe, ahp.CodeNotFound, nil) }, "gone 2"},
		"as VS Code says it":   {func(h *fakeHost) { h.fail(ahp.MethodSubscribe, ahp.CodeSessionNotFound, nil) }, "gone 2"},
		"refused": {func(h *fakeHost) { h.fail(ahp.MethodSubscribe, ahp.CodePermissionDenied, nil) },
			"gone 2 subscribe: no (code -32009)"},
		"without a state": {func(h *fakeHost) { h.answer(ahp.MethodSubscribe, ahp.SubscribeResult{}) },
			"gone 2 the host has no state for this channel"},
		"unreadable": {func(h *fakeHost) {
			h.answer(ahp.MethodSubscribe, ahp.SubscribeResult{Snapshot: &ahp.Snapshot{State: json.RawMessage(`{"content":1}`)}})
		}, "gone 2 read the snapshot: json: cannot unmarshal number into Go struct field"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := observe(t, client.ObserverOptions{}, good)
				r.drain()
				tt.prepare(r.host())
				r.Follow("ahp-terminal:/2")
				synctest.Wait()
				if lines := r.drain(); len(lines) != 1 || !strings.HasPrefix(lines[0], tt.want) {
					t.Errorf("events %q, want %q", lines, tt.want)
				}
				// It can be followed again once it exists.
				s := snapshot("ahp-terminal:/2", 30, terminal("here"))
				r.host().answer(ahp.MethodSubscribe, ahp.SubscribeResult{Snapshot: &s})
				r.Follow("ahp-terminal:/2")
				r.want(`resync 2 running "here"`)
			})
		})
	}
}

// A terminal that leaves the list is gone only after its last actions, some of which may
// arrive after the list.
func TestObserverUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good, uri)
		r.drain()
		h := r.host()
		h.send(ahp.RootURI, 11, listed())
		r.want("terminals")
		time.Sleep(900 * time.Millisecond)
		h.send(uri, 12, ahp.TerminalData{Data: "late"})
		r.want(`data 1 "late"`)
		h.send(uri, 13, ahp.TerminalExited{})
		r.want(`action 1 {"type":"terminal/exited"}`, "gone 1")
	})
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good, uri)
		r.drain()
		r.host().send(ahp.RootURI, 11, listed())
		r.want("terminals")
		time.Sleep(1100 * time.Millisecond)
		r.want("gone 1")
	})
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good, uri)
		r.drain()
		r.host().send(uri, 11, ahp.TerminalExited{})
		time.Sleep(time.Hour)
		r.want(`action 1 {"type":"terminal/exited"}`) // it stays listed until it is disposed of
		r.host().send(ahp.RootURI, 12, listed())
		r.want("terminals", "gone 1")
	})
}

// A consumer that does not pull costs a bounded amount of memory and is told that it fell
// behind.
func TestObserverSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := client.ObserverOptions{QueueLimit: 10_000, ContentLimit: 5_000}
		r := observe(t, o, good, uri)
		r.drain()
		seq := int64(11)
		send := func(n int) {
			for range n {
				r.host().send(uri, seq, ahp.TerminalData{Data: fmt.Sprintf("line %d\r\n", seq)})
				seq++
			}
			synctest.Wait()
		}
		send(500)
		if lines := r.drain(); len(lines) != 1 || !strings.HasPrefix(lines[0], "data 1 ") {
			t.Errorf("within the limit: %d events", len(lines))
		}
		start := time.Now()
		send(5000)
		r.host().send(uri, seq, ahp.TerminalTitleChanged{Title: "in the state"})
		time.Sleep(client.DefaultPatience)
		synctest.Wait()
		if waited := time.Since(start); waited > 3*client.DefaultPatience {
			t.Errorf("the connection was held up for %v", waited)
		}
		lines := r.drain()
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "resync 1 ") || len(lines[0]) > 7_000 {
			t.Fatalf("beyond the limit: %d events, the first of %d bytes", len(lines), len(lines[0]))
		}
		if want := fmt.Sprintf(`line %d\r\n"`, seq-1); !strings.HasSuffix(lines[0], want) {
			t.Errorf("the resync ends in %q, want %q", lines[0][len(lines[0])-20:], want)
		}
		if s, _ := r.State(uri); s.Title != "in the state" {
			t.Errorf("title %q", s.Title)
		}
		seq++
		send(1)
		r.want(fmt.Sprintf(`data 1 "line %d\r\n"`, seq-1))
	})
}

// A consumer that is slow, but not too slow, loses nothing: the observer does not read
// from the host meanwhile.
func TestObserverPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{QueueLimit: 2000}, good, uri)
		r.drain()
		const lines = 3000
		go func() {
			for i := range int64(lines) {
				msg := ahp.AppendData(nil, uri, 11+i, nil, []byte(fmt.Sprintf(`"%08d"`, i)))
				check.OK(t, r.host().peer.SendRaw(context.Background(), msg))
			}
		}()
		var got strings.Builder
		for got.Len() < 8*lines {
			time.Sleep(client.DefaultPatience / 2)
			e, err := r.Next(t.Context())
			if err != nil || e.Kind != client.Data || len(e.Data) > 2000 {
				t.Fatalf("%v %d bytes, %v", e.Kind, len(e.Data), err)
			}
			got.Write(e.Data)
		}
		for i := range lines {
			if s := got.String()[8*i : 8*i+8]; s != fmt.Sprintf("%08d", i) {
				t.Fatalf("piece %d is %s", i, s)
			}
		}
	})
}

// The end of Run does not wait for a consumer that never pulls.
func TestObserverPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{QueueLimit: 2000, Patience: time.Hour}, good, uri)
		r.drain()
		h := r.host()
		go func() {
			for i := range int64(3000) {
				_ = h.peer.SendRaw(t.Context(), ahp.AppendData(nil, uri, 11+i, nil, []byte(`"12345678"`)))
			}
		}()
		synctest.Wait()
		if len(r.ran) > 0 {
			t.Fatal("nothing is held up")
		}
		r.stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(r.ran) == 0 {
			t.Error("the connection is still held up")
		}
	})
}

func TestObserverTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, func(_ int, h *fakeHost) error {
			h.serve(ahp.MethodSubscribe, func(params []byte) (any, error) {
				var p ahp.SubscribeParams
				_ = json.Unmarshal(params, &p)
				s := snapshot(p.Channel, 10, terminal(""))
				return ahp.SubscribeResult{Snapshot: &s}, nil
			})
			return nil
		}, uri, "ahp-terminal:/2")
		r.drain()
		for i := range int64(3) {
			r.host().send(uri, 20+2*i, ahp.TerminalResized{Cols: 1 + i, Rows: 1})
		}
		r.host().send("ahp-terminal:/2", 30, ahp.TerminalCleared{})
		r.want(`action 1 {"type":"terminal/resized","cols":1,"rows":1}`, `action 2 {"type":"terminal/cleared"}`,
			`action 1 {"type":"terminal/resized","cols":2,"rows":1}`, `action 1 {"type":"terminal/resized","cols":3,"rows":1}`)
	})
}

func TestObserverNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, good, uri)
		r.drain()
		go func() {
			time.Sleep(time.Minute)
			r.host().send(uri, 11, ahp.TerminalData{Data: "x"})
		}()
		if e, err := r.Next(t.Context()); err != nil || string(e.Data) != "x" {
			t.Errorf("%+v, %v", e, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
	})
}

// The waits between attempts are random, below a growing limit. After a healthy
// connection the limit is small again.
func TestObserverBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("no route")
		healthy := 60
		r := observe(t, client.ObserverOptions{}, func(n int, h *fakeHost) error {
			if n == healthy {
				return good(n, h)
			}
			return down
		}, uri)
		start := time.Now()
		for range 10_000 {
			time.Sleep(time.Second)
			synctest.Wait()
			if len(r.attempts()) == healthy {
				break
			}
		}
		longest, dials := time.Duration(0), r.attempts()
		for i := range dials[1:] {
			pause := dials[i+1].Sub(dials[i])
			longest = max(longest, pause)
			if limit := min(250*time.Millisecond<<min(i, 10), 30*time.Second); pause > limit {
				t.Errorf("pause %d is %v, at most %v", i+1, pause, limit)
			}
		}
		if len(dials) != healthy || longest < 10*time.Second {
			t.Errorf("%d attempts in %v, the longest pause %v", len(dials), time.Since(start), longest)
		}
		lines := r.drain()
		if len(lines) > 20 || lines[0] != "down no route" {
			t.Errorf("%d events wait, the first %q", len(lines), lines[0])
		}
		time.Sleep(2 * time.Minute)
		_ = r.host().peer.Close()
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if n := len(r.attempts()); n <= healthy {
			t.Errorf("after a healthy connection there are %d attempts, want more than %d", n, healthy)
		}
	})
}

func TestObserverGivesUp(t *testing.T) {
	for name, want := range map[string]error{"token": client.ErrUnauthorized, "version": &ahp.VersionError{}} {
		synctest.Test(t, func(t *testing.T) {
			r := observe(t, client.ObserverOptions{}, func(int, *fakeHost) error { return want })
			err := <-r.ran
			r.ran <- err // for the clean-up
			if !errors.Is(err, want) {
				t.Errorf("%s: Run returned %v, want %v", name, err, want)
			}
			if e, err := r.Next(t.Context()); err != nil || e.Kind != client.Down || !errors.Is(e.Err, want) {
				t.Errorf("%s: %+v, %v, want what Run ended for", name, e, err)
			}
			if _, err := r.Next(t.Context()); !errors.Is(err, want) {
				t.Errorf("%s: then %v, want %v", name, err, want)
			}
		})
	}
}

func TestObserverHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{Heartbeat: 10 * time.Second}, good)
		r.drain()
		time.Sleep(time.Minute)
		r.want()
		r.host().serve(ahp.MethodPing, func([]byte) (any, error) { return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "busy") })
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if lines := r.drain(); len(lines) == 0 || !strings.HasPrefix(lines[0], "down the host does not answer: ") {
			t.Errorf("events %q", lines)
		}
	})
}

// A host without a root state can be followed, too.
func TestObserverWithoutRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, func(_ int, h *fakeHost) error {
			h.answer(ahp.MethodInitialize, ahp.InitializeResult{ProtocolVersion: "1.0.0", Snapshots: []ahp.Snapshot{snapshot(uri, 0, terminal("x"))}})
			h.fail(ahp.MethodSubscribe, ahp.CodeNotFound, nil)
			return nil
		}, uri)
		r.want("up", `resync 1 running "x"`)
		r.host().send(uri, 1, ahp.TerminalData{Data: "y"})
		r.want(`data 1 "y"`)
	})
	synctest.Test(t, func(t *testing.T) {
		r := observe(t, client.ObserverOptions{}, func(_ int, h *fakeHost) error {
			h.answer(ahp.MethodInitialize, ahp.InitializeResult{ProtocolVersion: "1.0.0",
				Snapshots: []ahp.Snapshot{{Resource: ahp.RootURI, State: json.RawMessage(`{"agents":7}`)}}})
			return nil
		})
		r.want("up")
	})
}
