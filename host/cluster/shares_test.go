package cluster_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

var linkSecret = bytes.Repeat([]byte{7}, 32)

// open opens a link at a node as a program does, and returns the guest's token, "" if it
// is refused.
func open(t *testing.T, n *node, id string) string {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"secret":%q}`, id, base64.RawURLEncoding.EncodeToString(linkSecret))
	resp := must.Get(http.Post(n.http.URL+"/s/open", "application/json", bytes.NewBufferString(body)))(t)
	defer resp.Body.Close()
	var got struct{ Token string }
	if resp.StatusCode == http.StatusOK && (json.NewDecoder(resp.Body).Decode(&got) != nil || got.Token == "") {
		t.Fatalf("%s: %+v", id, got)
	}
	return got.Token
}

// A link that a machine makes at one node lets guests in at every node, one for one guest
// lets in one at all of them together; when the machine ends it, all guests lose it at
// every node within two seconds.
func TestGuestsOfEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := startCompany(t, servers.URLs), startCompany(t, servers.URLs)
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(a.node)
	defer m.conn.Close()
	m.output("for guests\r\n")
	testkit.Eventually(t, patience, "the other node lists the terminal", func() bool { return len(b.Lent()) == 1 })
	hash := sha256.Sum256(linkSecret)
	share := func(id string, once bool) {
		t.Helper()
		p := ahp.ShareParams{Channel: lent, ID: id, SecretHash: hex.EncodeToString(hash[:]), ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond), Once: once}
		must.Do(t, m.conn.Peer().Call(t.Context(), ahp.MethodShare, p, nil))
	}
	share("abcdefgh", false)
	token := open(t, b.node, "abcdefgh")
	if token == "" {
		t.Fatal("the link does not work at the other node")
	}
	var guests []*client.Conn
	for _, n := range []*company{a, b} {
		c := must.Get(client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: token}, client.Options{ClientID: client.NewID()}))(t)
		defer c.Close()
		if r, err := c.Subscribe(t.Context(), lent); err != nil || r.Snapshot == nil {
			t.Errorf("a guest does not see the terminal: %v", err)
		}
		guests = append(guests, c)
	}
	share("bcdefghi", true)
	if open(t, a.node, "bcdefghi") == "" || open(t, b.node, "bcdefghi") != "" || open(t, a.node, "bcdefghi") != "" {
		t.Error("a link for one guest lets in another number of them")
	}
	must.Do(t, m.conn.Peer().Call(t.Context(), ahp.MethodUnshare, ahp.UnshareParams{Channel: lent, ID: "abcdefgh"}, nil))
	for i, c := range guests {
		testkit.Eventually(t, patience, fmt.Sprintf("the guest of node %d loses the terminal", i), func() bool { return c.Err() != nil })
	}
	if open(t, a.node, "abcdefgh") != "" || open(t, b.node, "abcdefgh") != "" {
		t.Error("a link that was ended works")
	}
	late := startCompany(t, servers.URLs)
	if open(t, late.node, "abcdefgh") != "" {
		t.Error("a node that comes later knows a link that was ended")
	}
}
