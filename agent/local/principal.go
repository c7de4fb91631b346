package local

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
)

// maxPrincipal bounds the name of an agent's principal, in bytes.
const maxPrincipal = 64

// checkPrincipal checks a principal's name.
func checkPrincipal(name string) *localapi.Error {
	if name == "" || name == "." || name == ".." || len(name) > maxPrincipal || strings.ContainsFunc(name, notPrincipal) {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("principal %.80q must be 1 to %d of the characters A-Z a-z 0-9 . _ : @ -, and neither . nor ..", name, maxPrincipal)}
	}
	return nil
}

func notPrincipal(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("._:@-", r)
}

// actorKey is where a request's context keeps its actor.
type actorKey struct{}

// WithActor returns a context whose requests are actor's.
func WithActor(ctx context.Context, actor term.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorFrom is the caller, as this door has found out: the local user or an agent. Handlers that are mounted here get it from their
// request's context. Without one it is nobody, who may do nothing.
func ActorFrom(ctx context.Context) term.Actor {
	actor, _ := ctx.Value(actorKey{}).(term.Actor)
	return actor
}

// lowered is who a request of the caller acts for: the caller, or the agent that its header names. Nobody stays nobody.
func lowered(c Caller, h http.Header) (term.Actor, *localapi.Error) {
	actor := c.Actor
	names, there := h[localapi.PrincipalHeader]
	if !there || actor.Role == 0 {
		return actor, nil
	}
	if len(names) != 1 {
		return term.Actor{}, &localapi.Error{Code: localapi.CodeBadRequest, Message: "more than one " + localapi.PrincipalHeader}
	}
	if err := checkPrincipal(names[0]); err != nil {
		return term.Actor{}, err
	}
	if actor != term.User && actor != term.Agent(names[0]) && !c.within {
		return term.Actor{}, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s may not act as agent %s", actor, names[0]), Hint: c.hint()}
	}
	return term.Agent(names[0]), nil
}

// hint tells a refused caller its identity, and the remedy.
func (c Caller) hint() string {
	switch c.Actor.Role {
	case term.RoleAgent:
		return fmt.Sprintf("%s, so it counts as %s: let the user do it, from a terminal that no agent started", c.Why, c.Actor)
	case 0:
		return "keep the program that opens the connection running until the answer comes; tether whoami shows whom a program counts as"
	}
	return "the request itself names an agent"
}

// nobodyError refuses a caller that is nobody.
func nobodyError(c Caller) *localapi.Error {
	return &localapi.Error{Code: localapi.CodeDenied, Message: "this program counts as nobody: " + c.Why, Hint: c.hint()}
}

// access is the pool in the caller's view.
func (s *Server) access(r *http.Request) term.Access { return s.opts.Access(ActorFrom(r.Context())) }

// handler answers a request, or says why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// person is h for the local user alone.
func (s *Server) person(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if actor := ActorFrom(r.Context()); actor != term.User {
			return s.refused(r, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s may not %s %s", actor, r.Method, r.URL.Path), Hint: callerFrom(r).hint()})
		}
		return h(w, r)
	}
}

// refused records the refusal and returns it. It keeps only the route of the request, because paths may contain private data.
func (s *Server) refused(r *http.Request, why *localapi.Error) *localapi.Error {
	s.opts.Policy.Audit(policy.Event{Type: policy.EventRefusal, Actor: ActorFrom(r.Context()), Detail: r.Pattern})
	return why
}
