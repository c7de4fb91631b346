package cluster_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// gate is a node with a door for machines.
type gate struct {
	*node
	door   *devices.Door
	tokens *access.Tokens
}

func startGate(t *testing.T, servers string, key ed25519.PrivateKey) *gate {
	t.Helper()
	g := &gate{}
	g.node = startWith(t, servers, func(n *node, o *host.Options) {
		var err error
		if g.tokens, err = access.Open(n.of.Place("tokens")); err == nil {
			g.door, err = devices.New(devices.Options{Key: key, Tokens: g.tokens, Pending: n.of.Place("pending"), Nodes: n.of})
		}
		must.Do(t, err)
		o.Access, o.Owners = devices.Both(g.tokens, g.door), n.of.Owners(g.tokens)
	})
	return g
}

// ask sends the door a request and returns the code of a refusal.
func (g *gate) ask(t *testing.T, what, token string, in, out any) string {
	t.Helper()
	body := must.Get(json.Marshal(in))(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, pairing.Path+what, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	g.door.ServeHTTP(w, r)
	var refused pairing.Refusal
	to := out
	if w.Code != http.StatusOK {
		to = &refused
	}
	if err := json.Unmarshal(w.Body.Bytes(), to); err != nil {
		t.Fatalf("%s: %d %q: %v", what, w.Code, w.Body, err)
	}
	return refused.Code
}

// A machine pairs, and proves its key, although each of its requests reaches another
// node. Each of its answers and tokens is good once at all of them together.
func TestPairingAtEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	hostKey := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	var nodes [3]*gate
	for i := range nodes {
		nodes[i] = startGate(t, servers.URLs, hostKey)
	}
	a, b, c := nodes[0], nodes[1], nodes[2]
	succeed := func(g *gate, what, token string, in, out any) {
		t.Helper()
		if code := g.ask(t, what, token, in, out); code != "" {
			t.Fatalf("%s: %s", what, code)
		}
	}
	for i, g := range nodes { // it answers others once it runs
		testkit.Eventually(t, patience, "the nodes hear each other", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := nodes[(i+1)%3].of.Ask(ctx, g.of.ID(), "pairing", []byte("{}"))
			return err == nil
		})
	}
	p := pairing.Pair{Host: hostKey.Public().(ed25519.PublicKey), Device: key.Public().(ed25519.PublicKey), Name: "laptop", DeviceNonce: bytes.Repeat([]byte{3}, pairing.NonceSize)}
	var begun pairing.Begun
	succeed(a, "begin", "", pairing.Begin{DeviceKey: p.Device, Name: p.Name, Commitment: pairing.Commit(p.Device, p.Name, p.DeviceNonce)}, &begun)
	p.HostNonce = begun.Nonce
	var revealed pairing.Revealed
	reveal := pairing.Reveal{ID: begun.ID, Nonce: p.DeviceNonce, Signature: p.SignDevice(key)}
	succeed(b, "reveal", "", reveal, &revealed)
	if !p.VerifyHost(revealed.Signature) {
		t.Error("the pairing is not signed by the host")
	}
	if code := c.ask(t, "reveal", "", reveal, &revealed); code != pairing.CodeBadRequest {
		t.Errorf("revealed again: %q", code)
	}
	waits := make(chan pairing.Waited, 2)
	for _, g := range []*gate{b, c} { // whoever waits later takes the place of the former
		go func() {
			var waited pairing.Waited
			g.ask(t, "wait", "", pairing.Wait{ID: begun.ID}, &waited)
			waits <- waited
		}()
	}
	if early := <-waits; early.Approved {
		t.Error("it is approved by nobody")
	}
	testkit.Eventually(t, patience, "another node lets it in", func() bool {
		_, err := devices.Approve(c.of.Place("pending"), c.tokens, p.Code(), "")
		return err == nil
	})
	if late := <-waits; !late.Approved || late.Principal != "laptop" {
		t.Errorf("approved: %+v", late)
	}

	prove := func(asked, answered *gate, s *pairing.Session) (answer pairing.Answer, opened pairing.Opened) {
		t.Helper()
		var challenge pairing.Challenge
		succeed(asked, "challenge", "", pairing.Ask{DeviceKey: p.Device}, &challenge)
		*s = pairing.Session{Host: p.Host, Device: p.Device, Challenge: challenge.Challenge, Nonce: bytes.Repeat([]byte{4}, pairing.NonceSize), Time: challenge.Time}
		answer = pairing.Answer{DeviceKey: s.Device, Challenge: s.Challenge, Nonce: s.Nonce, Signature: s.Sign(key, pairing.ForSession)}
		succeed(answered, "session", "", answer, &opened)
		return answer, opened
	}
	var s pairing.Session
	answer, opened := prove(a, b, &s)
	if !s.VerifyToken(opened.Token, opened.Signature) {
		t.Error("the token is not signed by the host")
	}
	conn := must.Get(client.Connect(t.Context(), client.Endpoint{URL: c.url, Token: opened.Token}, client.Options{ClientID: "laptops", Meta: ahp.NewClientMeta()}))(t)
	defer conn.Close()
	for i, g := range nodes {
		if code := g.ask(t, "session", "", answer, new(pairing.Opened)); code != pairing.CodeExpired {
			t.Errorf("the answer again at node %d: %q", i, code)
		}
		if _, err := client.Connect(t.Context(), client.Endpoint{URL: g.url, Token: opened.Token}, client.Options{ClientID: "laptops"}); err == nil {
			t.Errorf("the token again lets in at node %d", i)
		}
	}
	spoiled := answer
	spoiled.Challenge = append([]byte(c.of.ID()), answer.Challenge[10:]...)
	if code := a.ask(t, "session", "", spoiled, new(pairing.Opened)); code != pairing.CodeExpired {
		t.Errorf("a challenge of another node: %q", code)
	}

	// What the node has begun that goes away is to be begun again.
	var challenge pairing.Challenge
	succeed(a, "challenge", "", pairing.Ask{DeviceKey: p.Device}, &challenge)
	_, opened = prove(a, a, &s)
	a.of.Leave()
	a.end()
	answer.Challenge = challenge.Challenge
	testkit.Eventually(t, patience, "the challenge of a node that is gone has expired", func() bool { // until its word arrives, it may come back
		return b.ask(t, "session", "", answer, new(pairing.Opened)) == pairing.CodeExpired
	})
	if _, err := client.Connect(t.Context(), client.Endpoint{URL: b.url, Token: opened.Token}, client.Options{ClientID: "laptops"}); err == nil {
		t.Error("the token of a node that is gone lets in")
	}

	// A pairing token is good once, at any node.
	token, _, err := b.tokens.CreatePairing("desk", time.Hour)
	must.Do(t, err)
	r := pairing.Redemption{Host: p.Host, Device: p.Device, Token: token, Nonce: bytes.Repeat([]byte{5}, pairing.NonceSize)}
	redeem := pairing.Redeem{DeviceKey: r.Device, Nonce: r.Nonce, Signature: r.SignDevice(key)}
	testkit.Eventually(t, patience, "it is redeemed at the other node", func() bool { return c.ask(t, "redeem", token, redeem, new(pairing.Redeemed)) == "" })
	if code := b.ask(t, "redeem", token, redeem, new(pairing.Redeemed)); code != pairing.CodeWrongToken {
		t.Errorf("it is redeemed again: %q", code)
	}
}
