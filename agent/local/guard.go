package local

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
)

// guard bounds request bodies, refuses requests while the server drains, and keeps a
// panic in one request from ending the daemon.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				s.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("local request")
				fail(w, &localapi.Error{Code: localapi.CodeInternal, Message: "a bug in the daemon; its log has the details"})
			}
		}()
		most := int64(localapi.MaxBody)
		if r.URL.Path == "/v1/terminals" {
			most = localapi.MaxUserBody // as lowers it for agents
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if r.ContentLength != 0 {
			body := &dueBody{ReadCloser: r.Body, control: http.NewResponseController(w), within: hurry, declared: r.ContentLength, most: most}
			body.due()
			defer body.leave()
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// dueBody is the body of a request, which must arrive within a time that as sets. The
// part that no handler reads has that time once more: net/http reads it before it
// answers, even to clients that were refused, and would otherwise wait for ever.
type dueBody struct {
	io.ReadCloser
	control *http.ResponseController
	within  time.Duration
	came    bool

	declared, most int64 // bytes; declared is -1 if the client has not said how many
}

func (b *dueBody) due() {
	_ = b.control.SetReadDeadline(time.Now().Add(b.within)) // every connection here has deadlines
}

func (b *dueBody) leave() {
	if !b.came {
		b.due()
	}
}

// Read implements io.Reader.
func (b *dueBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, large := errors.AsType[*http.MaxBytesError](err)
	if err != nil && b.declared > b.most { // however much of it came in time
		return n, &http.MaxBytesError{Limit: b.most}
	}
	switch {
	case errors.Is(err, io.EOF):
		if !b.came {
			b.came = true
			_ = b.control.SetReadDeadline(time.Time{}) // otherwise the deadline would end the request
		}
	case err != nil && !large && !errors.Is(err, os.ErrDeadlineExceeded): // a chunk that is none
		err = localapi.BadRequest("request body: %v", err)
	}
	return n, err
}

// onSocket identifies the caller. It refuses requests that no client of ours sends, above
// all those that a browser could be tricked into sending.
func (s *Server) onSocket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := admit(r); err != nil {
			fail(w, err)
			return
		}
		at := connOf(r).peer()
		r = r.WithContext(context.WithValue(r.Context(), connKey{}, at))
		c, g := s.withToken(s.caller(at), takeToken(r))
		if g != nil {
			var end func()
			r, end = bound(r, g)
			defer end()
		}
		s.as(w, r, c, next)
	})
}

// as passes on a request for the caller, or for the agent that its header names. A header
// that only says that the caller is an agent, as tether mcp sends it, means the agent
// that has started the caller.
func (s *Server) as(w http.ResponseWriter, r *http.Request, c Caller, next http.Handler) {
	if c.Actor.Role == term.RoleAgent && len(r.Header[localapi.PrincipalHeader]) == 1 && r.Header.Get(localapi.PrincipalHeader) == localapi.DefaultAgent {
		r.Header.Del(localapi.PrincipalHeader)
	}
	actor, err := lowered(c, r.Header)
	if body, ok := r.Body.(*dueBody); ok {
		if err == nil && actor == term.User {
			body.within = bodyTimeout
		} else {
			body.most = localapi.MaxBody
		}
		body.due() // again, since looking for the caller may have taken long
	}
	of := c.Actor
	if err == nil {
		of = actor
		s.noteAgent(actor)
	}
	if full := s.conns.assign(connOf(r), of); full != nil {
		w.Header().Set("Connection", "close")
		err = full
	}
	ctx := context.WithValue(context.WithValue(r.Context(), actorKey{}, actor), callerKey{}, c)
	if err == nil && actor.Role == 0 && r.URL.Path != whoamiPath {
		err = nobodyError(c)
		if !abandoned(r, c) {
			s.opts.Policy.Audit(policy.Event{Type: policy.EventRefusal, Detail: r.Method + " by nobody: " + c.Why})
		}
	}
	if err != nil {
		fail(w, err)
		return
	}
	if actor != term.User {
		r.Body = http.MaxBytesReader(w, r.Body, localapi.MaxBody)
	}
	next.ServeHTTP(w, r.WithContext(ctx))
}

// endsWithin is how long the end of a connection may take to be seen when its program has
// ended.
const endsWithin = 100 * time.Millisecond

// abandoned reports whether the request only reads and its sender has ended with the
// connection, so that nobody takes an answer. Commands that end while they look at
// something leave such requests, as a short tether run does: these are no attempts.
func abandoned(r *http.Request, c Caller) bool {
	if !errors.Is(c.err, errPeerGone) || r.Method != http.MethodGet || r.Header.Get("Upgrade") != "" {
		return false
	}
	select {
	case <-r.Context().Done():
		return true
	case <-time.After(endsWithin):
		return false
	}
}

// noteAgent records that an agent has used this home, if actor is an agent.
func (s *Server) noteAgent(actor term.Actor) {
	if actor.Role != term.RoleAgent {
		return
	}
	if err := s.opts.Agents.Use(); err != nil {
		s.log.Warn().Err(err).Msg("note that an agent has come")
	}
}

func admit(r *http.Request) *localapi.Error {
	for _, h := range []string{"Origin", "Sec-Fetch-Site"} {
		if _, there := r.Header[h]; there {
			return &localapi.Error{Code: localapi.CodeForbidden, Message: "browsers are not accepted here"}
		}
	}
	if r.Host != localapi.Host {
		return &localapi.Error{Code: localapi.CodeForbidden, Message: "this socket accepts only the Host " + localapi.Host}
	}
	return nil
}

var errDraining = &localapi.Error{Code: localapi.CodeClosing, Message: "the daemon is shutting down", Hint: "try again in a moment"}

// unlessDraining refuses all requests once the server drains.
func (s *Server) unlessDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Err() != nil {
			fail(w, errDraining)
			return
		}
		next.ServeHTTP(w, r)
	})
}
