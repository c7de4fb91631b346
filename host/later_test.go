package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// ann is a person who may lend and look.
var ann = rights.Principal{Name: "ann", Role: rights.RoleAdmin}

// goesOn reports what of a connection does not arrive at once: output of a terminal that
// it watches, acknowledgements and counts of its own, and the answer to a request for a
// terminal without text. Its caller is in a bubble.
func (v *viewer) goesOn(m *viewer, live, own string) (missing []string) {
	v.t.Helper()
	v.mu.Lock()
	acked := v.acks[own]
	v.mu.Unlock()
	offset := int64(len(v.textOf(live)))
	m.output(live, fmt.Sprintf("line at %d\r\n", offset), offset)
	v.output(own, "x", acked)
	for _, c := range []struct {
		what string
		done func() bool
	}{
		{"output", func() bool { return strings.HasSuffix(v.textOf(live), fmt.Sprintf("line at %d\r\n", offset)) }},
		{"an acknowledgement", func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.acks[own] == acked+1 }},
	} {
		time.Sleep(300 * time.Millisecond) // an acknowledgement may wait for more output
		synctest.Wait()
		if !c.done() {
			missing = append(missing, c.what)
		}
	}
	var answered bool
	go func() { v.ping(); answered = v.subscribe("ahp-terminal:/empty") == nil }()
	synctest.Wait()
	if !answered {
		missing = append(missing, "another answer")
	}
	return missing
}

// crowd lends what the tests watch.
func crowd(t *testing.T, h *host.Host) (m, desk *viewer, live, own string) {
	live, own = "ahp-terminal:/live", "ahp-terminal:/own"
	m = joined(t, h, rights.Principal{Name: "m", Role: rights.RoleMachine}, viewOptions{resume: true})
	m.create(live)
	m.create("ahp-terminal:/empty")
	desk = joined(t, h, ann, viewOptions{resume: true, subs: []string{live}})
	desk.create(own)
	return m, desk, live, own
}

// A reply that waits until another connection of the same name has read what it asked for
// delays nothing else.
func TestAReplyThatWaitsForRoomDelaysNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := steadyHost(t, host.Options{})
		m, desk, live, own := crowd(t, h)
		var large []string
		for i := range 10 {
			uri := fmt.Sprintf("ahp-terminal:/large%d", i)
			large = append(large, uri)
			m.create(uri)
			for off := 0; off < 1000<<10; off += 50 << 10 {
				m.output(uri, strings.Repeat("x", 50<<10-2)+"\r\n", int64(off))
			}
		}
		m.ping()
		phone, far := testkit.Channels()
		served := make(chan struct{})
		go func() { defer close(served); _ = host.ServeAs(h, far, ann) }()
		must.Do(t, phone.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`))) // the pipe holds one answer
		sendInitialize(t, phone, "phone", large)                                                // it does not read this one
		synctest.Wait()
		answered := make(chan error, 2)
		for _, uri := range large[:2] {
			go func() { answered <- desk.subscribe(uri) }()
		}
		synctest.Wait()
		if _, waiting := h.Sending(); waiting != 1 || len(answered) > 0 {
			t.Fatalf("%d replies wait for room, %d are answered", waiting, len(answered))
		}
		for range 3 {
			if missing := desk.goesOn(m, live, own); missing != nil {
				t.Errorf("beside a reply that waits for room there is no %v", missing)
			}
		}
		phone.Close()
		<-served
		for range 2 {
			must.Do(t, <-answered)
		}
		if n := len(desk.textOf(large[0])) + len(desk.textOf(large[1])); n < 1000<<10 {
			t.Errorf("after the wait the text has %d bytes", n)
		}
		desk.close()
		synctest.Wait()
		if used, waiting := h.Sending(); used != 0 || waiting != 0 {
			t.Errorf("%d bytes are never given back, %d wait", used, waiting)
		}
	})
}

func sendInitialize(t *testing.T, ch jsonrpc.Channel, id string, subs []string) {
	t.Helper()
	p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: id, InitialSubscriptions: subs}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": ahp.MethodInitialize, "params": p})
	must.Do(t, ch.Send(t.Context(), raw))
}

// mirrored lends so many terminals at a node that never sends their text.
func mirrored(t *testing.T, h *host.Host, n int) (uris []string) {
	t.Helper()
	owner := testHost(t, host.Options{Nodes: &engine{}})
	laptop := connect(t, owner, "laptop", viewOptions{resume: true})
	for i := range n {
		laptop.create(fmt.Sprintf("ahp-terminal:/there%d", i))
	}
	c := owner.Terminals().NodeChanges(t.Context(), 0, n)
	for _, e := range c.Entries {
		must.Do(t, h.Terminals().Mirror("owner", c.On, e))
		uris = append(uris, e.URI)
	}
	return uris
}

// A subscription to a terminal whose node does not answer waits for its text for two
// seconds from the request, however many do, and delays nothing else.
func TestASilentNodeDelaysOnlyItsSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := steadyHost(t, host.Options{Nodes: &engine{}})
		m, desk, live, own := crowd(t, h)
		there := mirrored(t, h, 20)
		answered := make(chan time.Duration, len(there))
		for _, uri := range there {
			time.Sleep(50 * time.Millisecond)
			for range 2 { // the second request finds the subscription of the first
				go func() {
					began := time.Now()
					must.Do(t, desk.subscribe(uri))
					answered <- time.Since(began)
				}()
			}
		}
		synctest.Wait()
		if missing := desk.goesOn(m, live, own); missing != nil {
			t.Errorf("beside waits for a silent node there is no %v", missing)
		}
		for range 2 * len(there) {
			if took := <-answered; took != 2*time.Second {
				t.Errorf("a subscription waited for %v", took)
			}
		}
	})
}

// Nothing comes before the answer to the handshake, however long that waits.
func TestTheHandshakeIsAnsweredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := steadyHost(t, host.Options{Nodes: &engine{}})
		there := mirrored(t, h, 1)
		ch, far := testkit.Channels()
		served := make(chan struct{})
		go func() { defer close(served); _ = host.ServeAs(h, far, ann) }()
		sendInitialize(t, ch, "desk", there)
		for _, msg := range []string{
			`{"jsonrpc":"2.0","method":"dispatchAction","params":` + action(`"type":"terminal/cleared"}}`) + `}`, // is refused
			`{"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"channel":"` + ahp.RootURI + `"}}`,
		} {
			must.Do(t, ch.Send(t.Context(), []byte(msg)))
		}
		synctest.Wait()
		var got []string
		for range 3 {
			msg := must.Get(ch.Recv(t.Context()))(t)
			var m struct {
				ID     int
				Method string
			}
			must.Do(t, json.Unmarshal(msg, &m))
			got = append(got, fmt.Sprint(m.ID, m.Method))
		}
		if want := "[1 2 0action]"; fmt.Sprint(got) != want {
			t.Errorf("came %v, want %s", got, want)
		}
		ch.Close()
		<-served
	})
}
