package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// drained starts Drain and returns a channel that is closed when it is over.
func drained(ctx context.Context, h *host.Host) <-chan struct{} {
	over := make(chan struct{})
	go func() { defer close(over); h.Drain(ctx) }()
	return over
}

func TestDrainSendsWaitingMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		h := testHost(t, host.Options{Runner: runner})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		const shell = "ahp-terminal:/shell"
		must.Do(t, owner.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: shell, Claim: ahp.ClientClaim("laptop")}, nil))
		v, g := slowViewer(t, h, "slow", uri, shell)
		want := strings.Repeat("all of it\r\n", 1000)
		for i := 0; i < len(want); i += 1100 {
			owner.output(uri, want[i:i+1100], int64(i))
		}
		owner.ping()
		over := drained(t.Context(), h)
		synctest.Wait()
		select {
		case <-over:
			t.Fatal("it is over before the observer has everything")
		default:
		}
		before := h.Count()
		late := clientTerminal("ahp-terminal:/late", "laptop")
		if err := owner.call(ahp.MethodCreateTerminal, late, nil); err == nil || h.Count() != before {
			t.Errorf("a terminal was taken at the end: %v", err)
		}
		g.openUp()
		<-over
		<-v.done
		if got := v.textOf(uri); got != want {
			t.Errorf("the observer has %d bytes of %d", len(got), len(want))
		}
		if st := v.state(shell); !st.Lifecycle.Exited() {
			t.Errorf("the observer does not know that the shell has ended: %+v", st)
		}
		if st := v.state(uri); st.Lifecycle.Exited() {
			t.Error("a terminal of a machine's is said to have exited")
		}
		select {
		case <-runner.procs[shell].killed:
		default:
			t.Error("the shell goes on")
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{StallTime: time.Hour})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		v, g := slowViewer(t, h, "stalled", uri)
		for i := range int64(1000) { // more than is on its way
			owner.output(uri, "x", i)
		}
		owner.ping()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		h.Drain(ctx)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v, want 3 s", took)
		}
		h.Close()
		g.openUp()
		<-v.done
		<-owner.done
	})
}

// Close tells everybody that the host goes away, however busy the machine is.
func TestEverySubscriberGetsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		l := testkit.NewPipes()
		server := &http.Server{Handler: h}
		go func() { _ = server.Serve(l) }() // until it is closed
		t.Cleanup(func() { server.Close() })
		var all []*viewer
		for i := range 20 {
			all = append(all, via(t, fmt.Sprint("client ", i), l.Dial))
		}
		h.Close()
		for _, v := range all {
			<-v.done
			if e, ok := errors.AsType[*wsconn.CloseError](v.peer.Err()); !ok || e.Code != wsconn.CloseGoingAway {
				t.Errorf("%s is told %v", v.id, v.peer.Err())
			}
		}
	})
}

// A client that connects while the host ends is told so and tries again; its messages are
// not acknowledged.
func TestNewClientsAreRefusedAtTheEnd(t *testing.T) {
	testkit.Leaks(t)
	h, url := serve(t, host.Options{})
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	owner.output(uri, "one", 0)
	owner.await("the acknowledgement", func() bool { return owner.acks[uri] == 3 })
	<-drained(t.Context(), h)
	<-owner.done
	if err := owner.peer.Err(); err == nil || !strings.Contains(err.Error(), "going away") {
		t.Errorf("the machine is told %v", err)
	}
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil))(t)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-WebSocket-Version": {"13"}, "Sec-WebSocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("who comes then is answered %d, Retry-After %q", answer.StatusCode, answer.Header.Get("Retry-After"))
	}
}
