package host_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/events"
	"tether/host"
	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// subscribers are the principals for whom webhooks were asked for.
type subscribers struct{ all chan rights.Principal }

func (s subscribers) Subscribe(_ context.Context, p rights.Principal, _ mcp.Webhook) (mcp.Subscribed, error) {
	s.all <- p
	return mcp.Subscribed{}, errors.New("enough")
}

func (subscribers) Unsubscribe(rights.Principal, mcp.Webhook) error { return nil }

// hooked is the principal as which the host asks for a webhook of a token.
func (s subscribers) hooked(t *testing.T, url, token string) rights.Principal {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"events/subscribe","params":{"name":"terminal.exited","arguments":{},"delivery":{"mode":"webhook","url":"https://x.example/","secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/events":{}}}}}}`
	posted(t, url, token, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "events/subscribe", "Mcp-Name", "terminal.exited")
	return <-s.all
}

// posted sends a message to the MCP door, with more headers, and returns the status and
// the session of the answer.
func posted(t *testing.T, url, token, body string, more ...string) (status int, session string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(url, "ws", "http", 1)+"/mcp", strings.NewReader(body)))(t)
	all := append([]string{"Authorization", "Bearer " + token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, more...)
	for i := 0; i < len(all); i += 2 {
		r.Header.Set(all[i], all[i+1])
	}
	a := must.Get(http.DefaultClient.Do(r))(t)
	a.Body.Close()
	return a.StatusCode, a.Header.Get("Mcp-Session-Id")
}

// began is a stream of events that says when it has begun.
type began chan struct{}

func (b began) Active(string, bool) error { b <- struct{}{}; return nil }
func (began) Event(events.Event) error    { return nil }
func (began) Heartbeat(string) error      { return nil }

// A token of an agent is replaced without an interruption, also if the new one was never
// used when the old one is revoked: only what the old one has opened ends. With the last
// one, everything does.
func TestReplacingAToken(t *testing.T) {
	for _, used := range []bool{true, false} {
		tokens := must.Get(access.Open(access.File(filepath.Join(t.TempDir(), "private", "tokens.json"))))(t)
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { tokens.Run(ctx, nil) })
		first, one, err := tokens.Create("helper", rights.RoleOperator, 0)
		must.Do(t, err)
		runner, hooks := &shellRunner{}, subscribers{make(chan rights.Principal, 1)}
		h, url := serve(t, host.Options{Access: tokens, Named: tokens.Named, Sessions: true, AgentShells: true, Runner: runner, Webhooks: hooks})
		old := must.Get(overHTTP(t, url, first, nil))(t)
		lines := must.Get(overLines(t, url, first, nil))(t)
		var ran outcome
		use(t, old, "run_command", map[string]any{"command": "serve", "background": true}, &ran)
		hook := hooks.hooked(t, url, first)
		_, session := posted(t, url, first, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		inSession := func(token string) (status int) {
			status, _ = posted(t, url, token, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Mcp-Session-Id", session)
			return status
		}

		second, two, err := tokens.Create("helper", rights.RoleOperator, 0)
		must.Do(t, err)
		if used {
			must.Get(overHTTP(t, url, second, nil))(t)
		}
		must.Get(tokens.Revoke(one.ID))(t)
		_ = lines.Wait() // it ends with its token
		fresh := must.Get(overHTTP(t, url, second, nil))(t)
		var list []struct{ ID string }
		use(t, fresh, "list_terminals", nil, &list)
		if len(list) != 1 || list[0].ID != ran.TerminalID {
			t.Errorf("used %t: after the replacement the agent has %v", used, list)
		}
		var again outcome
		use(t, fresh, "run_command", map[string]any{"command": "more"}, &again)
		if again.Reason == "" {
			t.Errorf("used %t: %+v", used, again)
		}
		if next := hooks.hooked(t, url, second); hook.Live.Err() != nil || next.Live.Err() != nil {
			t.Errorf("used %t: webhooks of the old token end with %v, of the new one with %v", used, hook.Live.Err(), next.Live.Err())
		}
		if status := inSession(second); session == "" || status != http.StatusOK {
			t.Errorf("used %t: in the session %q of the old token: %d", used, session, status)
		}
		stream, end := context.WithCancel(t.Context())
		begins, ends := make(began), make(chan error, 1)
		go func() { ends <- h.Agents().Stream(stream, hook, &events.Request{Name: events.MachineBack}, begins) }()
		select {
		case <-begins:
		case err := <-ends:
			t.Errorf("used %t: a webhook's stream ends with %v", used, err)
		}
		end()

		must.Get(tokens.Revoke(two.ID))(t)
		for _, p := range runner.shell {
			<-p.killed
		}
		<-hook.Live.Done()
		if why := context.Cause(hook.Live); !errors.Is(why, access.ErrRevoked) {
			t.Errorf("what belongs to the name ends with %v", why)
		}
		third, _, err := tokens.Create("helper", rights.RoleOperator, 0)
		must.Do(t, err)
		if status := inSession(third); status != http.StatusNotFound {
			t.Errorf("in a session of the former tokens a later one gets %d", status)
		}
		stop()
		run.Wait()
	}
}

// A parked terminal of a machine outlives a token that is replaced, and ends with the
// last one.
func TestReplacingATokenOfAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaff(false, "machine.laptop.", "machine.laptop..new")
		h := testHost(t, host.Options{Access: s, Named: func(string, rights.Role) (rights.Principal, bool) {
			p := s.of["machine.laptop..new"]
			return p, p.Live.Err() == nil
		}, Grace: time.Second, Park: time.Hour})
		laptop := joined(t, h, s.of["machine.laptop."], viewOptions{resume: true})
		laptop.lend("ahp-terminal:/a", "")
		laptop.close()
		time.Sleep(2 * time.Second)
		s.ends["machine.laptop."](errors.New("revoked"))
		synctest.Wait()
		if n := len(h.Parked()); n != 1 {
			t.Fatalf("after the replacement %d terminals are parked", n)
		}
		laptop = joined(t, h, s.of["machine.laptop..new"], viewOptions{resume: true})
		laptop.lend("ahp-terminal:/b", "ahp-terminal:/a")
		if n := len(h.Parked()); n != 0 {
			t.Errorf("%d are parked while the machine is there", n)
		}
		laptop.close()
		time.Sleep(2 * time.Second)
		if n := len(h.Parked()); n != 1 {
			t.Errorf("with the new token %d are parked", n)
		}
		s.ends["machine.laptop..new"](errors.New("revoked"))
		synctest.Wait()
		if n := len(h.Parked()); n != 0 {
			t.Errorf("without a valid token %d are parked", n)
		}
	})
}

// A name without a host that knows its tokens lasts as long as one that was used.
func TestANameLastsAsLongAsItsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		var ends []context.CancelFunc
		token := func(owner string) rights.Principal {
			live, end := context.WithCancel(t.Context())
			ends = append(ends, end)
			return rights.Principal{Name: "ann", Role: rights.RoleObserver, Owner: owner, Live: live}
		}
		a, b, other := token("p-1"), token("p-1"), token("p-2")
		live := h.Lasting(a)
		if h.Lasting(b) != live || h.Lasting(other) == live || h.Lasting(a) != live {
			t.Error("a name with one owner has one time, and another owner's another")
		}
		named := a
		named.Live = live
		if h.Lasting(named) != live {
			t.Error("the holder of what belongs to a name is no token of it")
		}
		ends[0]()
		ends[2]()
		synctest.Wait()
		if live.Err() != nil || h.Lasting(a) != live || h.Lasting(other).Err() == nil {
			t.Errorf("with one of two tokens: %v", live.Err())
		}
		ends[1]()
		synctest.Wait()
		if live.Err() == nil || h.Lasting(a).Err() == nil || h.Lasting(named).Err() == nil {
			t.Error("without a token it lasts")
		}
		if next := token("p-1"); h.Lasting(next).Err() != nil || h.Lasting(next) == live {
			t.Error("a later token of the name has a time of its own")
		}
		if h.Lasting(rights.Principal{Role: rights.RoleAdmin}).Done() != nil {
			t.Error("the host's own token ends")
		}
	})
}
