package local

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/jsonspan"
	"tether/platform/proc"
)

// power is an operation that only a person may do. It needs a caller that no agent has
// started and that shows a sign of a person, see [Caller]. A program that an agent has
// left behind without any trace of the agent does not show a sign.
type power struct {
	does string // as in "it may not …"
	// early says that the power needs no sign in a home that no agent has used: there is
	// nobody yet from whom to protect it.
	early bool
	// when reports from the body whether a request uses the power; nil: every request
	// does.
	when func(body []byte) bool
	// unless selects requests that need no sign; nil: none.
	unless func(*Server, *http.Request, []byte) bool
}

// powers are the powers that each route needs. Other routes need no sign: those that end
// or withdraw something, lists, and starts of terminals that are lent by the
// configuration.
var powers = map[string][]power{
	"POST /v1/approvals/{id}":        {{does: "approve what an agent asks for", when: body(func(a localapi.ApprovalAnswer) bool { return a.Allow }), unless: (*Server).answersOwn}},
	"POST /v1/terminals/{ref}/lend":  {{does: "lend a terminal", early: true}},
	"POST /v1/terminals/{ref}/share": {{does: "share a terminal with a guest", early: true}},
	"POST /v1/terminals":             {{does: "lend a terminal to a host that it names", early: true, when: body(func(r localapi.SpawnRequest) bool { return len(r.LendTo) > 0 })}},
	"POST /v1/adopt":                 {{does: "adopt a pane that tether has not started", early: true}},
	"POST /v1/hosts":                 {pairing},
	"POST /v1/pairings":              {pairing},
	"POST /v1/pairings/{id}":         {pairing},
	"POST /v1/hosts/{name}":          {{does: "offer tools to a host", when: body(func(c localapi.HostChange) bool { return c.Tools != nil && *c.Tools })}},
	"POST /v1/tokens": {
		{does: "make a token of yours", early: true, when: body(func(r localapi.TokenRequest) bool { return r.Person })},
		{does: "make a token", when: body(func(r localapi.TokenRequest) bool { return !r.Person })},
	},
	"POST /v1/notify/{name}":      {notifying},
	"DELETE /v1/notify/{name}":    {notifying},
	"POST /v1/notify/{name}/test": {notifying},
	"POST /v1/token":              {{does: "see your own token"}},
}

var pairing = power{does: "pair with a host", early: true}

var notifying = power{does: "change or use the URLs of your notifications", early: true}

// typingPower is typing into a terminal that a person has started; see hands.
var typingPower = power{does: "type into a terminal of yours"}

// body applies a condition to the decoded body. A body that the handler will refuse
// fulfils it.
func body[T any](is func(T) bool) func([]byte) bool {
	return func(data []byte) bool {
		var v T
		return jsonspan.Unmarshal(data, &v) != nil || is(v)
	}
}

// signed returns h, restricted to callers with a sign if a needed power requires one. h
// itself refuses agents.
func (s *Server) signed(needed []power, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if ActorFrom(r.Context()) != term.User || callerFrom(r).Sign != "" {
			return h(w, r)
		}
		data, err := io.ReadAll(r.Body) // guard bounds it
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		for _, p := range needed {
			if (p.when == nil || p.when(data)) && !(p.early && !s.opts.Agents.Used()) && !(p.unless != nil && p.unless(s, r, data)) {
				return s.refused(r, p.refuse(callerFrom(r)))
			}
		}
		return h(w, r)
	}
}

// refuse tells a caller without a sign its identity, the missing sign, and the remedy.
func (p power) refuse(c Caller) *localapi.Error {
	if c.Actor != term.User { // its identity has changed since it connected
		return &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("this program may not %s: %s", p.does, c.Why), Hint: c.hint()}
	}
	hint := "run it at a terminal; for a script, make a token at a terminal (tether token create --person NAME) and set TETHER_TOKEN_FILE=FILE. tether whoami says for whom a program counts"
	if c.Stranger != "" {
		hint = fmt.Sprintf("run the same command in another terminal, or answer at the notification where it has buttons, or set TETHER_TOKEN_FILE to the file of a token of yours; if %q is no agent, add its name to the configuration: [identity] mine = [%[1]q]", c.Stranger)
	}
	return &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("this program may not %s: it counts as yours, but shows no sign of a person, as %s", p.does, c.NoSign), Hint: hint}
}

// withToken adds a sign to the caller if the request has a valid token of the person. It
// adds nothing to an agent or to nobody. The grant is nil unless the token is the sign.
func (s *Server) withToken(c Caller, token string) (Caller, *grant) {
	if token == "" || c.Actor != term.User || c.Sign != "" {
		return c, nil
	}
	var g *grant
	if s.opts.Tokens != nil {
		g = s.opts.Tokens.find(token, true)
	}
	if g == nil {
		c.NoSign += ", and its token is not valid"
		return c, nil
	}
	c.Sign, c.NoSign = fmt.Sprintf("your token %s", g.Principal), ""
	return c, g
}

// proxied has the requests under way that ACP proxies make for their agents, by the
// proxy's process. The zero value is ready to use.
type proxied struct {
	mu  sync.Mutex
	all map[proc.ID][]*policy.Request
}

// begin records a request until end is called.
func (p *proxied) begin(at proc.ID, asked *policy.Request) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[proc.ID][]*policy.Request{}
	}
	p.all[at] = append(p.all[at], asked)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all[at] = slices.DeleteFunc(p.all[at], func(r *policy.Request) bool { return r == asked })
		if len(p.all[at]) == 0 {
			delete(p.all, at)
		}
	}
}

// has reports whether the process has such a request under way.
func (p *proxied) has(at proc.ID, q policy.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.all[at], func(r *policy.Request) bool {
		return r.Door == q.Door && r.Actor == q.Actor && r.Line == q.Line && r.Cwd == q.Cwd && slices.Equal(r.Argv, q.Argv)
	})
}

// answersOwn reports whether an ACP proxy answers a question about its own request, which
// it may do once: the answer comes from the person at its editor. The proxy gains nothing
// by that, because it could run the command itself.
func (s *Server) answersOwn(r *http.Request, data []byte) bool {
	var a localapi.ApprovalAnswer
	at, ok := r.Context().Value(connKey{}).(peer)
	if !ok || at.err != nil || jsonspan.Unmarshal(data, &a) != nil || a.ForSeconds != 0 {
		return false
	}
	asked, _, _ := s.opts.Policy.Questions()
	return slices.ContainsFunc(asked, func(q policy.Question) bool {
		return q.ID == r.PathValue("id") && !q.Expired && s.proxied.has(at.ID, q.Request)
	})
}

// hands checks the programs that type through a connection. It is for one goroutine.
type hands struct {
	server   *Server
	request  *http.Request // that has opened the connection
	signed   bool          // a sign was seen
	recorded bool          // a missing sign is recorded once
}

// mayType returns nil if the caller may type into the terminal; a person's terminal
// requires a sign. A caller without a sign when it connects may have one later, for
// example once the shell has put it into the foreground.
func (h *hands) mayType(i term.Info) error {
	if h.signed || i.Owner != term.User || i.Unsigned || ActorFrom(h.request.Context()) != term.User {
		return nil // the terminal decides an agent's rights
	}
	c := callerFrom(h.request)
	if at, ok := h.request.Context().Value(connKey{}).(peer); ok && c.Sign == "" && !overTCP(h.request) {
		c = h.server.caller(at)
	}
	if c.Actor == term.User && c.Sign != "" {
		h.signed = true
		return nil
	}
	err := typingPower.refuse(c)
	if !h.recorded {
		h.recorded = true
		return h.server.refused(h.request, err)
	}
	return err
}
