package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// users knows tokens that are the role's name, a dash and the principal's.
type users struct {
	looks atomic.Int64 // for tokens that were not known at once
	mu    sync.Mutex
	ends  map[string]context.CancelCauseFunc
	live  map[string]context.Context
}

func newUsers(tokens ...string) *users {
	u := &users{ends: map[string]context.CancelCauseFunc{}, live: map[string]context.Context{}}
	for _, token := range tokens {
		u.live[token], u.ends[token] = context.WithCancelCause(context.Background())
	}
	return u
}

func (u *users) Authenticate(token string) (rights.Principal, bool) {
	u.looks.Add(1)
	return u.Known(token)
}

func (u *users) Known(token string) (rights.Principal, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	live, ok := u.live[token]
	role, name, _ := strings.Cut(token, "-")
	return rights.Principal{Name: name, Role: rights.Role(role), Live: live}, ok && live.Err() == nil
}

// as connects with a token.
func as(t *testing.T, url, token, id string, o viewOptions) *viewer {
	t.Helper()
	return dial(t, url+"?tkn="+token, id, o)
}

func TestRightsOfEachRole(t *testing.T) {
	_, url := serve(t, host.Options{Runner: &fakeRunner{procs: map[string]*fakeProcess{}}, Access: newUsers("machine-laptop", "machine-other", "observer-ann", "agent-bot", "admin-root")})
	owner := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true, subs: []string{ahp.RootURI}})
	const lent, shell = "ahp-terminal:/lent", "ahp-terminal:/shell"
	owner.create(lent)
	owner.output(lent, "hello\r\n", 0)
	admin := as(t, url, "admin-root", "root", viewOptions{})
	if err := admin.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: shell, Claim: ahp.ClientClaim("root")}, nil); err != nil {
		t.Fatalf("an administrator's shell: %v", err)
	}
	type may struct{ Lists, Sees, Lends, Shell, Types, Disposes bool }
	for token, want := range map[string]may{
		"machine-other": {Lists: false, Sees: false, Lends: true},
		"observer-ann":  {Lists: true, Sees: true},
		"agent-bot":     {Lists: true, Sees: true},
	} {
		v := as(t, url, token, token, viewOptions{subs: []string{ahp.RootURI, lent}})
		var got may
		marker, _ := ahp.FindClientTerminals(v.result)
		if marker.MayLend == nil || *marker.MayLend != want.Lends {
			t.Errorf("%s: the marker %s does not say mayLend: %t", token, v.result.Meta[ahp.MarkerKey], want.Lends)
		}
		listed := v.catalogue().Terminals
		got.Lists = len(listed) == 2
		if len(listed) != 0 && !got.Lists {
			t.Errorf("%s is listed %v", token, listed)
		}
		got.Sees = v.state(lent).Claim.Kind != "" && v.subscribe(lent) == nil
		got.Shell = v.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: "ahp-terminal:/s" + token, Claim: ahp.ClientClaim(token)}, nil) == nil
		seq := v.dispatch(shell, ahp.TerminalInput{Data: "rm -rf /\r"})
		got.Types = !v.answer(seq).Rejected()
		got.Disposes = v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: lent}, nil) == nil
		got.Lends = v.call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/l"+token, token), nil) == nil
		if got.Lends {
			if err := v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: "ahp-terminal:/l" + token}, nil); err != nil {
				t.Errorf("%s disposes of its own: %v", token, err)
			}
		}
		check.Equal(t, token, want, got)
	}
	if err := admin.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: lent}, nil); err != nil {
		t.Errorf("an administrator disposes of a machine's terminal: %v", err)
	}
}

// A machine's catalogue has its own terminals, whatever others do, also after
// reconnecting.
func TestAMachineSeesItsOwnTerminals(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "machine-b", "observer-o")})
	a := as(t, url, "machine-a", "a", viewOptions{resume: true, subs: []string{ahp.RootURI}})
	b := as(t, url, "machine-b", "b", viewOptions{resume: true, subs: []string{ahp.RootURI}})
	o := as(t, url, "observer-o", "o", viewOptions{subs: []string{ahp.RootURI}})
	for i := range 5 {
		a.create(fmt.Sprint("ahp-terminal:/a", i))
		b.create(fmt.Sprint("ahp-terminal:/b", i))
	}
	o.await("all terminals", func() bool { return len(o.root.Terminals) == 10 })
	for _, v := range []*viewer{a, b} {
		v.await("its own terminals", func() bool { return len(v.root.Terminals) == 5 })
		v.ping()
		seen, _ := v.received()
		for _, e := range seen {
			other := map[string]string{"a": "ahp-terminal:/b", "b": "ahp-terminal:/a"}[v.id]
			if strings.Contains(string(e.Action), other) {
				t.Errorf("%s was sent %s", v.id, e.Action)
			}
		}
	}
	// It cannot disturb terminals that it may not see: refusals are told to nobody.
	seq := b.dispatch("ahp-terminal:/a0", ahp.TerminalTitleChanged{Title: "forged"})
	if e := b.answer(seq); !e.Rejected() || *e.RejectionReason != "no such terminal" {
		t.Errorf("a foreign terminal: %+v", e)
	}
	a.close()
	_, last := a.received()
	again := as(t, url, "machine-a", "a", viewOptions{noInit: true})
	var r ahp.ReconnectResult
	must.Do(t, again.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "a", LastSeenServerSeq: last,
		Subscriptions: []string{ahp.RootURI, "ahp-terminal:/a0", "ahp-terminal:/b0"}}, &r))
	if r.Type == ahp.ReconnectReplay && !cmp.Equal(r.Missing, []string{"ahp-terminal:/b0"}) {
		t.Errorf("missing %v, want b0 alone", r.Missing)
	}
}

// A person at a machine watches the machine's terminals at the host with the machine's
// own key or token, as another client than its daemon: and no others.
func TestAMachineWatchesItself(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "machine-b")})
	daemon := as(t, url, "machine-a", "daemon", viewOptions{resume: true, subs: []string{ahp.RootURI}})
	other := as(t, url, "machine-b", "other", viewOptions{resume: true})
	v := as(t, url, "machine-a", "watch", viewOptions{subs: []string{ahp.RootURI}})
	daemon.create(uri)
	other.create("ahp-terminal:/other")
	daemon.output(uri, "hello", 0)
	v.await("the terminal is listed", func() bool { return len(v.root.Terminals) == 1 && v.root.Terminals[0].Resource == uri })
	must.Do(t, v.subscribe(uri))
	daemon.output(uri, " world", 5)
	v.awaitText(uri, "hello world")
	if err := v.subscribe("ahp-terminal:/other"); code(err) != int64(ahp.CodeNotFound) {
		t.Errorf("another machine's: %v", err)
	}
	for _, a := range []ahp.Action{ahp.TerminalOutput{Data: "forged"}, ahp.TerminalTitleChanged{Title: "forged"}, ahp.TerminalExited{}, ahp.TerminalCleared{}} {
		if e := v.answer(v.dispatch(uri, a)); !e.Rejected() {
			t.Errorf("%s by who watches was taken", a.Type())
		}
	}
	if err := v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil); code(err) != int64(ahp.CodePermissionDenied) {
		t.Errorf("it disposes: %v", err)
	}
	if err := v.call(ahp.MethodCreateTerminal, clientTerminal(uri, "watch"), nil); code(err) != int64(ahp.CodeAlreadyExists) {
		t.Errorf("it announces what is another's: %v", err)
	}
	daemon.await("an observer is counted", func() bool { return daemon.observers[uri] == 1 })
	v.close()
	_, last := v.received()
	again := as(t, url, "machine-a", "watch", viewOptions{noInit: true})
	var r ahp.ReconnectResult
	must.Do(t, again.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "watch", LastSeenServerSeq: last,
		Subscriptions: []string{ahp.RootURI, uri, "ahp-terminal:/other"}}, &r))
	if r.Type == ahp.ReconnectReplay && !cmp.Equal(r.Missing, []string{"ahp-terminal:/other"}) {
		t.Errorf("missing %v, want the other machine's alone", r.Missing)
	}
}

// A clientId belongs to the principal that first used it, and to machines first.
func TestForgedClientIDs(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "machine-b", "observer-o", "admin-r")})
	a := as(t, url, "machine-a", "laptop", viewOptions{resume: true})
	a.create("ahp-terminal:/a")
	refused := func(token, method string) {
		t.Helper()
		v := as(t, url, token, "laptop", viewOptions{noInit: true})
		p := any(ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "laptop"})
		if method == ahp.MethodReconnect {
			p = ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "laptop"}
		}
		if err := v.call(method, p, nil); code(err) != int64(ahp.CodePermissionDenied) && code(err) != int64(ahp.CodeNotFound) {
			t.Errorf("%s as the laptop with %s: %v", method, token, err)
		}
	}
	for _, token := range []string{"machine-b", "observer-o", "admin-r"} {
		refused(token, ahp.MethodInitialize)
		refused(token, ahp.MethodReconnect)
	}
	a.ping() // it is still there
	squatter := as(t, url, "observer-o", "desktop", viewOptions{})
	b := as(t, url, "machine-b", "desktop", viewOptions{resume: true})
	<-squatter.done
	b.create("ahp-terminal:/b")
	refused("observer-o", ahp.MethodInitialize)
}

func TestRevokedWhileConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUsers("machine-a")
		h := host.New(host.Options{Access: u, Grace: time.Second})
		defer h.Close()
		near, far := testkit.Channels()
		p, _ := u.Authenticate("machine-a")
		served := make(chan error, 1)
		go func() { served <- host.ServeAs(h, far, p) }()
		v := newViewer(t, near, "laptop")
		v.initialize(viewOptions{resume: true})
		v.create("ahp-terminal:/a")
		u.ends["machine-a"](errors.New("the token was revoked"))
		<-v.done
		<-served
		synctest.Wait()
		if got := h.Count(); got != 1 {
			t.Errorf("%d terminals within the grace time, want 1", got)
		}
		time.Sleep(2 * time.Second)
		if got := h.Count(); got != 0 {
			t.Errorf("%d terminals after it, want 0", got)
		}
	})
}

// comeBack is how many guesses a place has got again since.
func comeBack(began time.Time) int { return int(time.Since(began) / (3 * time.Second)) }

func TestGuessing(t *testing.T) {
	log := &testkit.Output{}
	logger := zerolog.New(log)
	o := host.Options{Access: newUsers("observer-o"), Logger: &logger}
	_, url := serve(t, o)
	status := func(token string) int {
		_, err := wsconn.Dial(t.Context(), url+"?tkn="+token, wsconn.Options{})
		refused, ok := errors.AsType[*wsconn.DialError](err)
		if !ok {
			return 0
		}
		return refused.Status
	}
	wrong, limited := 0, 0
	began := time.Now()
	for i := range 40 {
		switch s := status(fmt.Sprint("guess-", i)); s {
		case http.StatusForbidden:
			wrong++
		case http.StatusTooManyRequests:
			limited++
		default:
			t.Fatalf("status %d", s)
		}
	}
	if back := comeBack(began); wrong < 10 || wrong > 30+back || limited == 0 && back < 10 {
		t.Errorf("%d wrong ones were looked at and %d were not; want about %d to be", wrong, limited, 10+back)
	}
	if n := strings.Count(log.String(), "connection refused"); n < wrong || n > wrong+20 {
		t.Errorf("%d lines in the log for %d guesses that were looked at", n, wrong)
	}
	if strings.Contains(log.String(), "guess-") {
		t.Error("the log holds what was guessed")
	}
}

// Despite guesses, right tokens, cookies and links from the same address pass, and the
// file of tokens is left alone.
func TestRightTokensPassDuringGuesses(t *testing.T) {
	users := newUsers("observer-o")
	h, url := serve(t, host.Options{Access: users, Token: secret})
	cookie := launchedAs(t, h, url, rights.Principal{Name: "o", Role: rights.RoleObserver})
	link := h.Page().Launch(rights.Principal{Name: "o", Role: rights.RoleObserver})
	guess := func() int { r, _ := ask(t, url, visit{path: "/mcp?tkn=guess"}); return r.StatusCode }
	for range 200 {
		if guess() == http.StatusTooManyRequests {
			break
		}
	}
	before := users.looks.Load()
	limited := 0
	for range 10 {
		if guess() == http.StatusTooManyRequests {
			limited++
		}
	}
	if looks := users.looks.Load() - before; limited == 0 || int(looks) != 10-limited {
		t.Errorf("of 10 more guesses %d are limited, and the file was looked at for %d", limited, looks)
	}
	for _, token := range []string{"observer-o", secret} {
		as(t, url, token, "of "+token, viewOptions{}).ping()
	}
	if r, _ := ask(t, url, visit{path: "/", cookie: cookie}); r.StatusCode != http.StatusOK {
		t.Errorf("with a cookie: %d", r.StatusCode)
	}
	for range 50 {
		ask(t, url, pressing(url, "#guess"))
	}
	if r, _ := ask(t, url, pressing(url, link)); r.StatusCode != http.StatusSeeOther {
		t.Errorf("a good link: %d", r.StatusCode)
	}
}

// Foreign pages use up no guesses: requests that they make a browser send are refused
// before a secret in them is checked.
func TestPagesOfOthersUseUpNoGuesses(t *testing.T) {
	users := newUsers("observer-o")
	_, url := serve(t, host.Options{Access: users, Token: secret})
	for _, from := range []visit{
		{site: "cross-site", mode: "no-cors", dest: "image"},
		{site: "same-site", mode: "no-cors", dest: "image"}, // another port of this machine
		{site: "cross-site", mode: "navigate", dest: "iframe"},
		{site: "cross-site", mode: "navigate", dest: "document"},
	} {
		for _, path := range []string{"/mcp?tkn=guess", "/?tkn=guess", "/events?tkn=guess", "/plain?tkn=guess", "/mcp?tkn=" + secret} {
			for range 15 {
				from.path = path
				if r, _ := ask(t, url, from); r.StatusCode != http.StatusForbidden {
					t.Fatalf("%+v: status %d, want 403", from, r.StatusCode)
				}
			}
		}
	}
	if n := users.looks.Load(); n != 0 {
		t.Errorf("%d of them had their tokens looked at", n)
	}
	if r, _ := ask(t, url, visit{path: "/mcp?tkn=guess"}); r.StatusCode != http.StatusForbidden || users.looks.Load() != 1 {
		t.Errorf("a first guess after them: %d, %d looks", r.StatusCode, users.looks.Load())
	}
}

func TestAuditHoldsNoContent(t *testing.T) {
	var mu sync.Mutex
	var events []rights.AuditEvent
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "observer-o"), Audit: func(ev rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, ev)
	}})
	a := as(t, url, "machine-a", "laptop", viewOptions{resume: true})
	a.create("ahp-terminal:/a")
	a.output("ahp-terminal:/a", "canary-text", 0)
	o := as(t, url, "observer-o", "ann", viewOptions{})
	must.Do(t, o.subscribe("ahp-terminal:/a"))
	if err := o.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: "ahp-terminal:/a"}, nil); code(err) != int64(ahp.CodePermissionDenied) {
		t.Errorf("dispose by an observer: %v", err)
	}
	if _, err := wsconn.Dial(t.Context(), url+"?tkn=canary-token", wsconn.Options{}); err == nil {
		t.Error("a wrong token was taken")
	}
	o.close()
	want := []string{rights.AuditConnected, rights.AuditClient, rights.AuditCreated, rights.AuditSubscribed, rights.AuditDenied, rights.AuditRefused, rights.AuditEnded}
	testkit.Eventually(t, patience, "all kinds of events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		seen := map[string]bool{}
		for _, ev := range events {
			seen[ev.Type] = true
		}
		for _, kind := range want {
			if !seen[kind] {
				return false
			}
		}
		return true
	})
	mu.Lock()
	defer mu.Unlock()
	if all := fmt.Sprint(events); strings.Contains(all, "canary") {
		t.Errorf("the record holds a token or text: %s", all)
	}
}

// stubborn is a connection whose other end does not let it be closed.
type stubborn struct {
	jsonrpc.Channel
	end chan struct{}
}

// CloseReason implements jsonrpc.ReasonCloser.
func (s stubborn) CloseReason(int, string) error {
	<-s.end
	return s.Channel.Close()
}

// Requests on a connection that is being closed, as when its token was revoked, change
// nothing.
func TestAConnectionThatIsClosedAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Sessions: true})
		connect(t, h, "laptop", viewOptions{resume: true}).create(uri)
		near, far := testkit.Channels()
		held := stubborn{far, make(chan struct{})}
		served := make(chan struct{})
		go func() { defer close(served); _ = h.ServeChannel(context.Background(), held) }()
		old := newViewer(t, near, "admin")
		old.initialize(viewOptions{})
		now := connect(t, h, "admin", viewOptions{}) // it takes the place of the first
		must.Do(t, now.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: sessionURI}, nil))
		for method, params := range map[string]any{
			ahp.MethodDisposeTerminal: ahp.DisposeTerminalParams{Channel: uri},
			ahp.MethodDisposeSession:  ahp.DisposeSessionParams{Channel: sessionURI},
		} {
			ctx, cancel := context.WithCancel(context.Background())
			asked := make(chan error)
			go func() { asked <- old.peer.Call(ctx, method, params, nil) }()
			synctest.Wait()
			cancel()
			<-asked
		}
		for _, uri := range []string{uri, sessionURI} {
			if err := now.subscribe(uri); err != nil {
				t.Errorf("%s: %v", uri, err)
			}
		}
		close(held.end)
		old.close()
		<-served
	})
}
