package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// reconnect opens a new connection for a viewer's client and sends reconnect on it. The
// new viewer has the old one's state.
func reconnect(t *testing.T, h *host.Host, old *viewer, subs ...string) (*viewer, reconnected, error) {
	t.Helper()
	v := connect(t, h, old.id, viewOptions{noInit: true})
	old.mu.Lock()
	v.mu.Lock()
	p := ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: old.id, LastSeenServerSeq: old.lastSeq, Subscriptions: subs}
	for uri, from := range old.from {
		p.LastSeenServerSeq = max(p.LastSeenServerSeq, from)
		v.from[uri] = p.LastSeenServerSeq
	}
	v.root = old.root
	for uri, st := range old.states {
		copied := st.Clone()
		v.states[uri], v.text[uri] = &copied, &strings.Builder{}
		v.text[uri].WriteString(old.text[uri].String())
	}
	v.mu.Unlock()
	old.mu.Unlock()
	var r reconnected
	if err := v.call(ahp.MethodReconnect, p, &r); err != nil {
		return v, r, err
	}
	for _, s := range r.Snapshots {
		v.load(s)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range r.Actions {
		if e.ServerSeq <= p.LastSeenServerSeq {
			t.Errorf("replayed serverSeq %d, which is not after %d", e.ServerSeq, p.LastSeenServerSeq)
		}
		v.reduce(e)
	}
	return v, r, nil
}

type reconnected struct {
	Type      string         `json:"type"`
	Actions   []ahp.Envelope `json:"actions"`
	Missing   []string       `json:"missing"`
	Snapshots []ahp.Snapshot `json:"snapshots"`
}

func TestReconnect(t *testing.T) {
	for _, test := range []struct {
		name     string
		while    func(owner *viewer) // happens while the observer is away
		subs     []string
		wantType string
		missing  []string
	}{
		{"nothing happened", func(*viewer) {}, []string{ahp.RootURI, uri}, ahp.ReconnectReplay, nil},
		{"some output", func(o *viewer) { o.output(uri, "more", -1); o.dispatch(uri, ahp.TerminalTitleChanged{Title: "t2"}) },
			[]string{ahp.RootURI, uri}, ahp.ReconnectReplay, nil},
		{"asking twice", func(o *viewer) { o.output(uri, "more", -1) }, []string{uri, ahp.RootURI, uri}, ahp.ReconnectReplay, nil},
		{"too much output", func(o *viewer) {
			for range 100 {
				o.output(uri, strings.Repeat("much\n", 100), -1)
			}
		}, []string{ahp.RootURI, uri}, ahp.ReconnectSnapshot, nil},
		{"the terminal has gone", func(o *viewer) { _ = o.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil) },
			[]string{ahp.RootURI, uri}, ahp.ReconnectReplay, []string{uri}},
		{"the terminal is another one", func(o *viewer) {
			_ = o.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil)
			o.create(uri)
		}, []string{ahp.RootURI, uri}, ahp.ReconnectSnapshot, nil},
		{"a channel never heard of", func(*viewer) {}, []string{uri, "ahp-terminal:/x"}, ahp.ReconnectReplay, []string{"ahp-terminal:/x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{LogBytes: 10_000, Scrollback: 20_000})
				owner := connect(t, h, "laptop", viewOptions{})
				owner.create(uri)
				watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI, uri}})
				owner.output(uri, "first ", -1)
				watcher.awaitText(uri, "first ")
				synctest.Wait()
				watcher.close()
				test.while(owner)
				owner.ping()
				again, r, err := reconnect(t, h, watcher, test.subs...)
				must.Do(t, err)
				if r.Type != test.wantType || !cmp.Equal(append([]string{}, r.Missing...), append([]string{}, test.missing...)) {
					t.Errorf("got %s, missing %q; want %s, %q", r.Type, r.Missing, test.wantType, test.missing)
				}
				if test.missing == nil {
					owner.output(uri, "last", -1)
					again.awaitText(uri, "last")
					compareFresh(t, h, again)
				}
			})
		})
	}
}

// compareFresh compares a viewer's state with a new subscriber's.
func compareFresh(t *testing.T, h *host.Host, v *viewer) {
	t.Helper()
	fresh := connect(t, h, "fresh", viewOptions{subs: []string{ahp.RootURI, uri}})
	got, want := v.state(uri), fresh.state(uri)
	if len(want.Content) > len(got.Content) {
		t.Fatalf("%d parts, a new subscriber has %d", len(got.Content), len(want.Content))
	}
	if err := suffix(got.Content, want.Content); err != nil {
		t.Errorf("content differs from what a new subscriber gets: %v", err)
	}
	got.Content, want.Content = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state differs from what a new subscriber gets: %s", diff)
	}
	if _, ok := v.from[ahp.RootURI]; ok {
		if diff := cmp.Diff(fresh.catalogue(), v.catalogue()); diff != "" {
			t.Errorf("catalogue differs from what a new subscriber gets: %s", diff)
		}
	}
}

func TestReconnectOfAnUnknownClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		v := connect(t, h, "nobody", viewOptions{noInit: true})
		// VS Code sends it without a channel.
		err := v.call(ahp.MethodReconnect, json.RawMessage(`{"clientId":"nobody","lastSeenServerSeq":4,"subscriptions":[]}`), nil)
		if code(err) != ahp.CodeNotFound {
			t.Errorf("code %d, want %d: %v", code(err), ahp.CodeNotFound, err)
		}
		v.initialize(viewOptions{}) // still possible
	})
}

func TestNewestConnectionOfAClientWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		first := connect(t, h, "laptop", viewOptions{resume: true})
		first.create(uri)
		first.output(uri, "abc", 0)
		first.await("the acknowledgement", func() bool { return first.acks[uri] == 3 })
		second, _, err := reconnect(t, h, first)
		must.Do(t, err)
		<-first.done
		// By reconnect it is still the one that serves its terminals.
		second.await("the position at once", func() bool { return second.acks[uri] == 3 })
		second.output(uri, "def", 3)
		second.await("the acknowledgement", func() bool { return second.acks[uri] == 6 })
		time.Sleep(time.Hour)
		second.ping()
		if got := code(second.subscribe(uri)); got != 0 {
			t.Errorf("the terminal of a connected owner is gone: code %d", got)
		}
	})
}

func TestOwnerComesBack(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration
		again bool // it is still there
	}{{"in time", 29 * time.Second, true}, {"late", 31 * time.Second, false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{})
				first := connect(t, h, "laptop", viewOptions{resume: true})
				first.create(uri)
				first.output(uri, "0123456789", 0)
				first.await("the acknowledgement", func() bool { return first.acks[uri] == 10 })
				watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
				first.close()
				time.Sleep(test.after)
				second := connect(t, h, "laptop", viewOptions{resume: true})
				p := clientTerminal(uri, "laptop")
				p.Name = "renamed"
				must.Do(t, second.call(ahp.MethodCreateTerminal, p, nil))
				want := map[bool]int64{true: 10, false: 0}[test.again]
				second.await("an acknowledgement", func() bool { n, ok := second.acks[uri]; return ok && n == want })
				second.output(uri, "56789abc", 5)
				second.ping()
				synctest.Wait()
				if test.again {
					watcher.awaitText(uri, "0123456789abc")
					compareFresh(t, h, watcher)
				} else if !watcher.state(uri).Lifecycle.Exited() {
					t.Error("the observer was not told of the exit")
				}
				fresh := connect(t, h, "fresh", viewOptions{subs: []string{uri}})
				if got := fresh.state(uri).Title; got != "renamed" {
					t.Errorf("title %q, want that of the second announcement", got)
				}
			})
		})
	}
}

func TestAnnouncedAnewOrGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		first := connect(t, h, "laptop", viewOptions{resume: true})
		for i := range 3 {
			first.create(fmt.Sprint("ahp-terminal:/", i))
		}
		first.close()
		second := connect(t, h, "laptop", viewOptions{resume: true, subs: []string{ahp.RootURI}})
		second.create("ahp-terminal:/0")
		second.output("ahp-terminal:/1", "still here", 0) // the result shows the same
		second.ping()
		time.Sleep(time.Minute)
		second.ping()
		synctest.Wait()
		if got := len(second.catalogue().Terminals); got != 2 {
			t.Errorf("%d terminals are listed, want the two that the owner came back for", got)
		}
	})
}

func TestDispose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI}})
		owner.create(uri)
		must.Do(t, watcher.subscribe(uri))
		must.Do(t, watcher.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
		owner.await("terminal/exited, without a subscription", func() bool {
			return len(owner.envelopes) == 1 && owner.envelopes[0].Channel == uri &&
				string(owner.envelopes[0].Action) == `{"type":"terminal/exited","exitCode":-1}`
		})
		watcher.await("the exit", func() bool { return watcher.states[uri].Lifecycle.Exited() && len(watcher.root.Terminals) == 0 })
		seq := owner.dispatch(uri, ahp.TerminalOutput{Data: "late"})
		if e := owner.answer(seq); !e.Rejected() {
			t.Error("output for a disposed terminal was accepted")
		}
		err := watcher.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil)
		if code(err) != ahp.CodeNotFound {
			t.Errorf("disposing again: code %d, want %d", code(err), ahp.CodeNotFound)
		}
		owner.create(uri) // the name is free again
	})
}

// deafOwner is a connection of the client laptop that serves a terminal and reads nothing
// after its initialization.
func deafOwner(t *testing.T, h *host.Host, output string) jsonrpc.Channel {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	t.Cleanup(func() { near.Close(); <-served })
	send := func(msg string) {
		must.Do(t, near.Send(t.Context(), []byte(msg)))
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1.0.0"],"clientId":"laptop","_meta":{"tether/clientTerminals":{"versions":[1]}}}}`)
	must.Get(near.Recv(t.Context()))(t)
	params := must.Get(json.Marshal(clientTerminal(uri, "laptop")))(t)
	send(`{"jsonrpc":"2.0","id":2,"method":"createTerminal","params":` + string(params) + `}`)
	for i := range output { // each is acknowledged, but nobody listens
		send(string(ahp.AppendOutput(nil, uri, int64(i), []byte(output[i:i+1]), int64(i))))
	}
	synctest.Wait()
	return near
}

func TestAcknowledgementsThatWereNotReadAreSentAgain(t *testing.T) {
	for _, how := range []string{"initialize", "reconnect"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{})
				deafOwner(t, h, "0123456789")
				v := connect(t, h, "laptop", viewOptions{resume: true, noInit: how == "reconnect"})
				if how == "reconnect" {
					p := ahp.ReconnectParams{ClientID: "laptop", LastSeenServerSeq: 0}
					must.Do(t, v.call(ahp.MethodReconnect, p, nil))
				} else {
					v.create(uri)
				}
				v.await("the position", func() bool { return v.acks[uri] == 10 })
				v.output(uri, "abc", 10)
				v.await("the next position", func() bool { return v.acks[uri] == 13 })
			})
		})
	}
}

func TestReplacedConnectionChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		old := deafOwner(t, h, "0123")
		v := connect(t, h, "laptop", viewOptions{resume: true})
		v.create(uri)
		v.await("the position", func() bool { return v.acks[uri] == 4 })
		for i := range 3 { // as far as it is still read
			msg := ahp.AppendOutput(nil, uri, 1, []byte("old"), int64(4+3*i))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = old.Send(ctx, msg)
			cancel()
		}
		time.Sleep(time.Minute)
		v.output(uri, "new", 4)
		v.await("the next position", func() bool { return v.acks[uri] == 7 })
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
		if got := watcher.state(uri).Text(); got != "0123new" {
			t.Errorf("the terminal holds %q", got)
		}
	})
}

// The catalogue is the root's: who comes back to other channels alone is not told it, and
// nobody is told it for each of them.
func TestTheCatalogueIsSentForTheRootAlone(t *testing.T) {
	for _, subs := range [][]string{{}, {ahp.RootURI}} {
		synctest.Test(t, func(t *testing.T) {
			h := testHost(t, host.Options{Sessions: true})
			v := connect(t, h, "v", viewOptions{})
			must.Do(t, v.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: sessionURI}, nil))
			all := append([]string{sessionURI}, subs...)
			for _, uri := range all {
				must.Do(t, v.subscribe(uri))
			}
			synctest.Wait()
			v.close()
			connect(t, h, "laptop", viewOptions{}).create(uri)
			_, r, err := reconnect(t, h, v, all...)
			if err != nil || r.Type != ahp.ReconnectReplay {
				t.Fatalf("%q, %v", r.Type, err)
			}
			n := 0
			for _, e := range r.Actions {
				if e.Channel == ahp.RootURI {
					n++
				}
			}
			if n != len(subs) {
				t.Errorf("with %v it is told the catalogue %d times", all, n)
			}
		})
	}
}

// However many terminals a machine lends, the answer to its reconnect stays below its
// link's bound.
func TestAnswersToAMachineAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{MaxTerminals: 200, LogBytes: 64 << 10})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		var uris []string
		for n := range 100 {
			uris = append(uris, fmt.Sprint("ahp-terminal:/many-", n))
			owner.create(uris[n])
			for at := 0; at < 96<<10; at += 32 << 10 {
				owner.output(uris[n], strings.Repeat("\x1b[1m text\r\n", 3<<10)[:32<<10], int64(at))
			}
		}
		owner.ping()
		owner.mu.Lock()
		last := owner.lastSeq
		owner.mu.Unlock()
		owner.close()
		for name, seen := range map[string]int64{"replay or snapshots": last, "snapshots": 0} {
			near, far := testkit.Channels()
			served := make(chan struct{})
			go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
			size := &sized{Channel: near}
			v := newViewer(t, size, "laptop")
			var r ahp.ReconnectResult
			err := v.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "laptop", LastSeenServerSeq: seen, Subscriptions: uris}, &r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if most := size.most.Load(); most > 1<<20 {
				t.Errorf("%s: the answer has %d bytes, want less than 1 MiB", name, most)
			}
			v.close()
			<-served
		}
	})
}

// sized is a Channel that notes its longest message.
type sized struct {
	jsonrpc.Channel
	most atomic.Int64
}

func (s *sized) Recv(ctx context.Context) ([]byte, error) {
	msg, err := s.Channel.Recv(ctx)
	s.most.Store(max(s.most.Load(), int64(len(msg))))
	return msg, err
}

// suffix tells whether short is the tail of long: the same parts from the back, except
// that the first of short may lack the beginning of its text.
func suffix(long, short []ahp.ContentPart) error {
	if len(short) > len(long) {
		return fmt.Errorf("%d parts of %d", len(short), len(long))
	}
	long = long[len(long)-len(short):]
	for i := range short {
		l, s := long[i], short[i]
		if i == 0 {
			text := s.Text()
			if !strings.HasSuffix(l.Text(), text) {
				return fmt.Errorf("the first part %.60q is no tail of %.60q", text, l.Text())
			}
			l.Value, l.Output, s.Value, s.Output = "", "", "", ""
		}
		if diff := cmp.Diff(l, s); diff != "" {
			return fmt.Errorf("part %d of %d: %s", i, len(short), diff)
		}
	}
	return nil
}
