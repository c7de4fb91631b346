package cluster_test

import (
	"context"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/access"
	"tether/host/admission"
	"tether/host/cluster"
	"tether/host/preview"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// company is a node with tokens and people of the cluster.
type company struct {
	*node
	tokens *access.Tokens
	people *access.People
}

func startCompany(t *testing.T, servers string) *company {
	t.Helper()
	c := &company{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.node = startWith(t, servers, func(n *node, o *host.Options) {
		var err error
		if c.tokens, err = access.Open(n.of.Place("tokens")); err == nil {
			c.people, err = access.OpenPeople(n.of.Place("people"), c.tokens)
		}
		must.Do(t, err)
		o.Access, o.People, o.Owners = c.tokens, c.people, n.of.Owners(c.tokens)
		o.Previews = preview.Options{Domain: "localhost:9187", Key: [32]byte{1}, Used: access.OpenCodes(n.of.Place("previews"))}
		o.Shares = access.OpenShares(n.of.Place("shares"), func(err error) { t.Error(err) })
		o.Logins = access.OpenLogins(n.of.Place("logins"), c.tokens, own, func(err error) { t.Error(err) })
		go func() { defer close(done); c.tokens.Run(ctx, nil) }()
	})
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// sees reports whether a token lets in who lists the terminal.
func sees(t *testing.T, n *node, token string) bool {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: token}, client.Options{ClientID: client.NewID()})
	if err != nil {
		return false
	}
	defer c.Close()
	r, err := c.Subscribe(t.Context(), lent)
	return err == nil && r.Snapshot != nil
}

// Those who may watch a terminal may do so at every node, and nobody else at any; changes
// by the machine or the administrator count at every node within two seconds.
func TestAudiencesOfEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := startCompany(t, servers.URLs), startCompany(t, servers.URLs)
	tokens := map[string]string{}
	for _, who := range []string{"ann", "bob"} {
		p, err := a.people.Ensure(who)
		must.Do(t, err)
		a.tokens.OwnedBy(p.ID)
		if tokens[who], _, err = a.tokens.Create(who, rights.RoleObserver, 0); err != nil {
			t.Fatal(err)
		}
		if who == "ann" {
			if tokens["laptop"], _, err = a.tokens.Create("laptop", rights.RoleMachine, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	must.Do(t, a.people.Switch(true))
	for _, n := range []*company{a, b} {
		testkit.Eventually(t, patience, "both nodes enforce audiences", func() bool {
			c, err := client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: tokens["laptop"]}, client.Options{ClientID: client.NewID(), Meta: ahp.NewClientMeta()})
			if err != nil {
				return false
			}
			defer c.Close()
			marker, _ := ahp.FindClientTerminals(c.Result())
			return marker.KeepsAudiences()
		})
	}
	m := &machine{t: t, id: "laptop", uri: lent, token: tokens["laptop"]}
	m.lend(a.node)
	m.output("for ann\r\n")
	testkit.Eventually(t, patience, "ann sees it at the other node", func() bool { return sees(t, b.node, tokens["ann"]) })
	if sees(t, b.node, tokens["bob"]) || sees(t, a.node, tokens["bob"]) {
		t.Error("bob sees what is ann's")
	}
	audience := func(grants ...ahp.Grant) {
		t.Helper()
		var out struct{}
		must.Do(t, m.conn.Peer().Call(t.Context(), ahp.MethodAudience, ahp.AudienceParams{Channel: lent, Audience: ahp.Audience{Grants: grants}}, &out))
	}
	audience(ahp.Grant{To: "bob"})
	testkit.Eventually(t, patience, "bob sees it at the other node", func() bool { return sees(t, b.node, tokens["bob"]) })
	w := watchAs(t, b.node, lent, tokens["bob"])
	testkit.Eventually(t, patience, "bob watches it", func() bool { return w.has() != "" })
	began := time.Now()
	audience()
	testkit.Eventually(t, patience, "it has ended for bob", w.over)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("bob watched for another %v", took)
	}
	if sees(t, b.node, tokens["bob"]) {
		t.Error("bob still sees it")
	}
	audience(ahp.Grant{To: "bob"})
	testkit.Eventually(t, patience, "bob sees it again", func() bool { return sees(t, a.node, tokens["bob"]) && sees(t, b.node, tokens["bob"]) })
	if !b.Terminals().EndGrant(b.Lent()[0].ID, "bob") {
		t.Error("an administrator cannot withdraw it at the other node")
	}
	if sees(t, b.node, tokens["bob"]) {
		t.Error("bob sees it where it was withdrawn")
	}
	testkit.Eventually(t, patience, "it is withdrawn at the machine's node", func() bool { return !sees(t, a.node, tokens["bob"]) })
	audience(ahp.Grant{To: "bob"}, ahp.Grant{To: "ann"})
	for i, n := range []*company{a, b} {
		if sees(t, n.node, tokens["bob"]) {
			t.Errorf("node %d shows it again when the machine says its audience", i)
		}
	}
	m.conn.Close()
}

// A node that does not reach the engine admits nobody new. It serves who is there with
// the rights that it knows, for its time; then it closes all but the connections of
// machines, which go on.
func TestRightsGrace(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	type side struct {
		*node
		m        *machine
		observer *client.Conn
		agent    *agent
	}
	connect := func(n *node) (*client.Conn, error) {
		return client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: own}, client.Options{ClientID: client.NewID()})
	}
	var patient, strict side
	for _, s := range []*side{&patient, &strict} {
		grace, id, uri := time.Hour, "patients", lent
		if s == &strict {
			grace, id, uri = cluster.MinRightsGrace, "stricts", "ahp-terminal:/6d1e0000-0000-4000-8000-000000000002"
		}
		s.node = startAs(t, joinFor(t, servers.URLs, grace), func(_ *node, o *host.Options) {})
		s.m = &machine{t: t, id: id, uri: uri}
		s.m.lend(s.node)
		defer s.m.conn.Close()
		var err error
		if s.observer, err = connect(s.node); err != nil {
			t.Fatal(err)
		}
		defer s.observer.Close()
		s.agent = newAgent(t, s.node)
	}
	for i := range 3 {
		servers.Kill(i)
	}
	for _, s := range []*side{&patient, &strict} {
		testkit.Eventually(t, patience, "a node without the engine admits nobody", func() bool {
			c, err := connect(s.node)
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		if s.of.Reached() {
			t.Error("it says that it reaches its cluster")
		}
	}
	testkit.Eventually(t, patience, "the strict node closes what was open", func() bool { return strict.observer.Err() != nil })
	if r, err := strict.agent.session.ListTools(t.Context(), nil); err == nil {
		t.Errorf("the agent there goes on: %+v", r)
	}
	if err := patient.observer.Barrier(t.Context()); err != nil {
		t.Errorf("the patient node has closed what was open: %v", err)
	}
	if _, err := patient.agent.session.ListTools(t.Context(), nil); err != nil {
		t.Errorf("the agent of the patient node: %v", err)
	}
	for _, s := range []*side{&patient, &strict} {
		s.m.flood(s.m.sent + 64<<10) // is acknowledged: the machine's connection goes on
	}
	for i := range 3 {
		servers.Start(i)
	}
	for _, s := range []*side{&patient, &strict} {
		testkit.Eventually(t, patience, "a node that reaches the engine again admits", func() bool {
			c, err := connect(s.node)
			if err == nil {
				c.Close()
			}
			return err == nil && s.of.Reached()
		})
	}
	if err := patient.observer.Barrier(t.Context()); err != nil {
		t.Errorf("the patient node has closed what was open: %v", err)
	}
}

// While servers choose a leader, rights are good for longer; after a loss of the
// connection, only a check makes them good again.
func TestRightsOf(t *testing.T) {
	for _, c := range []struct {
		age   time.Duration
		good  bool // they were, and the servers are connected
		grace time.Duration
		want  admission.Age
	}{
		{time.Second, false, time.Minute, admission.Checked}, {5 * time.Second, true, time.Minute, admission.Checked},
		{5 * time.Second, false, time.Minute, admission.Old}, {11 * time.Second, true, time.Minute, admission.Old},
		{61 * time.Second, true, time.Minute, admission.Lapsed}, {3 * time.Second, false, cluster.MinRightsGrace, admission.Lapsed},
	} {
		if got := cluster.RightsOf(c.age, c.good, c.grace); got != c.want {
			t.Errorf("after %v, good %v, grace %v: %v, want %v", c.age, c.good, c.grace, got, c.want)
		}
	}
}
