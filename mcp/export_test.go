package mcp

import "net/http"

// Answer is answer.
type Answer struct{ *answer }

// NewAnswer is newAnswer for a request whose message has come.
func NewAnswer(w http.ResponseWriter, r *http.Request) Answer {
	a := newAnswer(w)
	a.allowEarly(r)
	return Answer{a}
}

// End is end.
func (a Answer) End() { a.end() }

// Send is send.
func (a Answer) Send(message []byte) error { return a.send(message) }

// ErrStreamOver is errStreamOver.
var ErrStreamOver = errStreamOver
