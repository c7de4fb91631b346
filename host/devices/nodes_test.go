package devices_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/host/sessions"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// pair are two nodes, whose questions are counted.
type pair struct {
	answers map[string]func(context.Context, []byte) []byte
	asked   int
}

// member is one of them.
type member struct {
	*pair
	name string
}

func (m member) ID() string { return m.name }

func (m member) Ask(ctx context.Context, node, _ string, question []byte) ([]byte, error) {
	m.asked++
	answer := m.answers[node]
	if answer == nil {
		return nil, sessions.ErrNoNode
	}
	return answer(ctx, question), nil
}

func (m member) Answer(_ string, by func(context.Context, []byte) []byte) { m.answers[m.name] = by }

// newPair starts the doors of two nodes with the same key and tokens, in which a machine
// is admitted.
func newPair(t *testing.T) (p *pair, here, there *world) {
	t.Helper()
	tokens, err := access.Open(access.File(filepath.Join(t.TempDir(), "state", "tokens.json")))
	must.Do(t, err)
	must.Get(tokens.AddDevice("laptop", public(key(1)), nil))(t)
	p = &pair{answers: map[string]func(context.Context, []byte) []byte{}}
	var all []*world
	for _, name := range []string{"nodexhere0", "nodexthere"} {
		w := &world{t: t, tokens: tokens, key: key(100)}
		if w.door, err = devices.New(devices.Options{Key: w.key, Tokens: tokens, Nodes: member{p, name}}); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return p, all[0], all[1]
}

// A token that no node has made asks none, and counts as a wrong one. A right one passes
// at any node with one question, also from an address that has guessed, and once.
func TestForgedTokensAskNobody(t *testing.T) {
	p, here, there := newPair(t)
	_, answer := there.challenge(key(1), pairing.ForSession)
	var opened pairing.Opened
	there.must("session", answer, &opened)
	right, at := opened.Token, len("tethersession_")
	if !strings.HasPrefix(right, "tethersession_nodexthere-") {
		t.Fatalf("the token is %s", right)
	}
	forged := []string{"tethersession_nodexthere-guess", "tethersession_nodexthere-" + strings.Repeat("A", 52), "tethersession_nodexthere-", "tethersession_", right[:len(right)-1], right + "A",
		"tethersession_nodexother" + right[at+len("nodexthere"):], "tethersession_nodexhere0" + right[at+len("nodexthere"):]}
	for i := at; i < len(right); i++ {
		b := []byte(right)
		if b[i]++; b[i] > 'Z' || b[i] < 'A' {
			b[i] = 'A'
		}
		forged = append(forged, string(b))
	}
	h := host.New(host.Options{Access: devices.Both(here.tokens, here.door)})
	defer h.Close()
	count := map[int]int{}
	status := func(token string) int {
		r := httptest.NewRequest(http.MethodGet, "http://host.example/ahp?tkn="+token, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, token := range forged {
		if token != right {
			count[status(token)]++
		}
	}
	if p.asked != 0 || count[http.StatusForbidden] == 0 || count[http.StatusTooManyRequests] == 0 || len(count) != 2 {
		t.Errorf("%d forged tokens: answers %v, %d questions", len(forged), count, p.asked)
	}
	if got := status(right); got != http.StatusUpgradeRequired || p.asked != 1 {
		t.Errorf("the right one: %d, %d questions", got, p.asked)
	}
	for range 20 {
		if got := status(right); got != http.StatusTooManyRequests && got != http.StatusForbidden {
			t.Errorf("the right one again: %d", got)
		}
	}
	if p.asked != 2 {
		t.Errorf("a used token costs another node %d questions", p.asked-1)
	}
}

// Neither does an invented id of a pairing, or an invented challenge. Genuine ones go on
// at any node.
func TestForgedIDsAskNobody(t *testing.T) {
	p, here, there := newPair(t)
	s, answer := there.challenge(key(1), pairing.ForSession)
	forged := answer
	forged.Challenge = append([]byte(nil), answer.Challenge...)
	forged.Challenge[20]++
	s.Challenge = forged.Challenge
	forged.Signature = s.Sign(key(1), pairing.ForSession)
	var begun pairing.Begun
	there.must("begin", pairing.Begin{DeviceKey: public(key(2)), Name: "desk", Commitment: nonce(1)}, &begun)
	for _, what := range []string{"session", "leave"} {
		if _, code := here.ask("192.0.2.1", what, "", forged, nil); code != pairing.CodeExpired {
			t.Errorf("%s: %q", what, code)
		}
	}
	for _, id := range []string{"nodexthere-x", "nodexthere-" + strings.Repeat("A", 52), begun.ID + "A", strings.Replace(begun.ID, "there", "other", 1)} {
		if _, code := here.ask("192.0.2.1", "wait", "", pairing.Wait{ID: id}, nil); code != pairing.CodeExpired {
			t.Errorf("wait %s: %q", id, code)
		}
		if _, code := here.ask("192.0.2.1", "reveal", "", pairing.Reveal{ID: id}, nil); code != pairing.CodeExpired {
			t.Errorf("reveal %s: %q", id, code)
		}
	}
	if p.asked != 0 {
		t.Errorf("%d questions about what nobody has made", p.asked)
	}
	if _, code := here.ask("192.0.2.1", "wait", "", pairing.Wait{ID: begun.ID}, nil); code != pairing.CodeBadRequest || p.asked != 1 {
		t.Errorf("a wait before it is revealed: %q, %d questions", code, p.asked)
	}
	here.must("session", answer, &pairing.Opened{})
	if p.asked != 2 {
		t.Error(fmt.Sprint("a genuine challenge: ", p.asked, " questions"))
	}
}
