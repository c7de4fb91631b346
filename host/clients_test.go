package host_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// A clientTry is a client's attempt at the host, and its expected result: a row of
// testdata/clients.txt.
type clientTry struct {
	want, who, method, channel, params, shows string
}

func clientTries(t *testing.T) (all []clientTry) {
	t.Helper()
	for _, f := range testkit.Table(t, "clients.txt", 6, 370) {
		all = append(all, clientTry{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return all
}

// answers are the names in the table of the codes with which a request is refused.
var answers = map[string]int64{
	"done": 0, "closed": -1,
	"denied": ahp.CodePermissionDenied, "not found": ahp.CodeNotFound, "exists": ahp.CodeAlreadyExists, "conflict": ahp.CodeConflict,
	"no session": ahp.CodeSessionNotFound, "session exists": ahp.CodeSessionAlreadyExists, "no provider": ahp.CodeProviderNotFound,
	"version": ahp.CodeUnsupportedProtocolVersion, "invalid": int64(jsonrpc.CodeInvalidParams), "no method": int64(jsonrpc.CodeMethodNotFound),
	"bad request": int64(jsonrpc.CodeInvalidRequest), "too many": int64(jsonrpc.CodeOverloaded),
}

// stage is a host with the objects of the table's rows.
type stage struct {
	t       *testing.T
	h       *host.Host
	url     string
	users   *users
	owner   *viewer // of LENT, GONE and SESSION
	looker  *viewer // sees all there is
	cookie  string
	names   map[string]string // in the table: URIs
	clients int
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, users: newUsers("machine-a", "machine-b", "observer-o", "agent-g", "operator-p", "admin-r", "admin-looker")}
	s.h, s.url = serve(t, host.Options{Sessions: true, Access: s.users, Runner: &fakeRunner{procs: map[string]*fakeProcess{}}})
	s.names = map[string]string{"ROOT": ahp.RootURI, "LENT": "ahp-terminal:/lent", "GONE": "ahp-terminal:/gone", "OTHER": "ahp-terminal:/other",
		"SHELL": "ahp-terminal:/shell", "SESSION": "ahp-session:/owned", "EMPTY": "", "NEW": "ahp-terminal:/new", "NONE": "ahp-terminal:/none"}
	s.owner = as(t, s.url, "machine-a", "laptop", viewOptions{resume: true})
	for _, name := range []string{"LENT", "GONE"} {
		s.owner.create(s.names[name])
		s.owner.output(s.names[name], "printed in "+name+"\r\n", 0)
	}
	code := int64(0)
	s.owner.dispatch(s.names["GONE"], ahp.TerminalExited{ExitCode: &code})
	s.owner.join(s.names["SESSION"], "run")
	s.names["CHAT"] = s.owner.session(s.names["SESSION"]).DefaultChat
	other := as(t, s.url, "machine-b", "desktop", viewOptions{resume: true})
	other.create(s.names["OTHER"])
	other.output(s.names["OTHER"], "printed in OTHER\r\n", 0)
	other.ping()
	s.looker = as(t, s.url, "admin-looker", "looker", viewOptions{})
	must.Do(t, s.looker.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: s.names["SHELL"], Claim: ahp.ClientClaim("looker")}, nil))
	var shells struct{ Shells []struct{ ID string } }
	_, body := ask(t, s.url, visit{path: "/shells", token: "admin-looker"})
	if err := json.Unmarshal([]byte(body), &shells); err != nil || len(shells.Shells) != 1 {
		t.Fatalf("shells: %s", body)
	}
	s.names["KEY"] = shells.Shells[0].ID
	s.cookie = launchedAs(t, s.h, s.url, rights.Principal{Role: rights.RoleAdmin})
	return s
}

// look is all that the host has: the state of each channel, and the list of sessions.
func (s *stage) look() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, name := range []string{"ROOT", "LENT", "GONE", "OTHER", "SHELL", "SESSION", "CHAT"} {
		var r ahp.SubscribeResult
		if err := s.looker.call(ahp.MethodSubscribe, ahp.SubscribeParams{Channel: s.names[name]}, &r); err != nil {
			all[name] = err.Error()
			continue
		}
		all[name] = string(r.Snapshot.State)
	}
	var r json.RawMessage
	must.Do(s.t, s.looker.call(ahp.MethodListSessions, ahp.ListSessionsParams{Channel: ahp.RootURI}, &r))
	all["sessions"] = string(r)
	return all
}

// fill replaces names by their URIs, and ME by the client's own id.
func (s *stage) fill(text, me string) string {
	words := []string{"ME", me, "LONG", strings.Repeat("x", 5000)}
	for name, uri := range s.names {
		words = append(words, name, uri)
	}
	return strings.NewReplacer(words...).Replace(text) // at once: a URI may have such a word in it
}

// try carries out the row and returns its result and the answer.
func (s *stage) try(c clientTry) (got, answer string) {
	s.t.Helper()
	if strings.HasPrefix(c.channel, "/") {
		v := visit{method: c.method, path: s.fill(c.channel, ""), form: c.params}
		switch {
		case c.who == "cookie":
			v.cookie = s.cookie
		case c.who != "nobody":
			v.token = c.who
		}
		r, body := ask(s.t, s.url, v)
		return strconv.Itoa(r.StatusCode), body
	}
	token, early := strings.CutPrefix(c.who, "new ")
	v := s.owner
	if token != "owner" {
		s.clients++
		ch := must.Get(wsconn.Dial(s.t.Context(), s.url+"?tkn="+token, wsconn.Options{ReadLimit: 16 << 20}))(s.t)
		v = newViewer(s.t, ch, fmt.Sprint("client-", s.clients))
		defer v.close()
		if !early {
			v.initialize(viewOptions{})
		}
	}
	params := s.fill(c.params, v.id)
	channel := s.fill(c.channel, v.id)
	if c.method == "action" {
		_ = v.subscribe(channel) // if it may: subscribers receive accepted actions
		e := v.answer(v.dispatchRaw(channel, []byte(params)))
		if e.Rejected() {
			return *e.RejectionReason, string(e.Action)
		}
		return "taken", string(e.Action)
	}
	all := map[string]json.RawMessage{}
	if params != "" {
		if err := json.Unmarshal([]byte(params), &all); err != nil {
			s.t.Fatalf("%q: %v", c.params, err)
		}
	}
	all["channel"], _ = json.Marshal(channel)
	var r json.RawMessage
	err := v.call(c.method, all, &r)
	n := code(err)
	for name, code := range answers {
		if n == code {
			return name, string(r)
		}
	}
	return fmt.Sprint(err), string(r)
}

// Clients of the host try each row of testdata/clients.txt over a real socket. A try that
// is refused, and a read, changes nothing.
func TestClientAttempts(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	var s *stage
	var before map[string]string
	for _, c := range clientTries(t) {
		name := strings.Join([]string{c.who, c.method, c.channel, c.params}, " ")
		if s == nil {
			s = newStage(t)
			before = s.look()
		}
		got, answer := s.try(c)
		if got != c.want && (c.method != "action" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		for word := range strings.FieldsSeq(c.shows) {
			sign, what := word[0], word[1:]
			if strings.Contains(answer, s.fill(what, "")) != (sign == '+') {
				t.Errorf("%s: the answer is %.2000s; want %s", name, answer, c.shows)
			}
		}
		reads := c.method == ahp.MethodSubscribe || c.method == ahp.MethodListSessions
		if !reads && (c.want == "done" || c.want == "taken" || c.want == "204") {
			s = nil // the next row needs all again
		} else if diff := cmp.Diff(before, s.look()); diff != "" {
			t.Errorf("%s: it has changed\n%s", name, diff)
			s = nil
		}
	}
}
