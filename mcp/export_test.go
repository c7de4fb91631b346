package mcp

import "net/http"

// Answer is answer.
type Answer struct{ *answer }

// NewAnswer is newAnswer.
func NewAnswer(w http.ResponseWriter, r *http.Request, early bool) Answer {
	return Answer{newAnswer(w, r, early)}
}

// End is end.
func (a Answer) End() { a.end() }

// Send is send.
func (a Answer) Send(message []byte) error { return a.send(message) }

// ErrStreamOver is errStreamOver.
var ErrStreamOver = errStreamOver
