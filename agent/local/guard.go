package local

import (
	"net/http"
	"runtime/debug"

	"tether/agent/term"
)

// guard bounds what is read, refuses what comes while the server drains, and
// keeps a bug in one request from ending the daemon.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				s.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("local request")
				fail(w, &Error{Code: CodeInternal, Message: "a bug in the daemon; its log has the details"})
			}
		}()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// onSocket refuses requests that no program of ours sends, above all what a
// browser could be made to send, and notes who asks.
func (s *Server) onSocket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, err := admit(r)
		if err != nil {
			fail(w, err)
			return
		}
		if actor == term.User {
			actor = origin(r.Context())
		}
		next.ServeHTTP(w, r.WithContext(WithActor(r.Context(), actor)))
	})
}

func admit(r *http.Request) (term.Actor, *Error) {
	for _, h := range []string{"Origin", "Sec-Fetch-Site"} {
		if _, there := r.Header[h]; there {
			return term.Actor{}, &Error{Code: CodeForbidden, Message: "browsers are not served here"}
		}
	}
	if r.Host != Host {
		return term.Actor{}, &Error{Code: CodeForbidden, Message: "this socket answers to the Host " + Host + " only"}
	}
	return lowered(term.User, r.Header)
}

var errDraining = &Error{Code: CodeClosing, Message: "the daemon is shutting down", Hint: "try again in a moment"}

// unlessDraining refuses everything once the server drains.
func (s *Server) unlessDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Err() != nil {
			fail(w, errDraining)
			return
		}
		next.ServeHTTP(w, r)
	})
}
