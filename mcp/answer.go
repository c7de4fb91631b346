package mcp

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// beginWithin is the time after which the headers of an answer are sent without a
	// message: proxies wait for the headers for a bounded time.
	beginWithin = 2 * time.Second
	// commentEvery is the longest silence of an answer in frames. nginx closes an answer
	// that is silent for 60 s, other proxies after 10 to 30 s.
	commentEvery = 5 * time.Second
	// frameTimeout bounds how long a client over HTTP may take to read one frame.
	frameTimeout = 30 * time.Second
)

// answer is the answer to a request over HTTP. If it is of frames (text/event-stream), it
// is never silent for longer than commentEvery, and a stream of events can write its
// frames between those of the SDK. That is correct because the SDK (v1.8.0) writes each
// frame with one Write. TestStreamOverHTTP and TestLongAnswersAreNotSilent fail if that
// changes.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	own     http.Header // the SDK's; net/http has a copy as soon as the answer has begun
	ids     ids         // of the server; set before the SDK writes anything

	mu    sync.Mutex // held while something is written
	early bool       // the answer may begin before the SDK writes anything
	timer *time.Timer
	begun bool // the headers are sent
	sse   bool // the answer is of frames
	bare  bool // the answer is of frames, but the SDK takes it for another: its writes are not frames
	ended bool
}

// newAnswer returns the answer to a request. The caller must call end when the request
// was served.
func newAnswer(w http.ResponseWriter) *answer {
	a := &answer{w: w, control: http.NewResponseController(w), own: w.Header().Clone()}
	if a.own == nil {
		a.own = http.Header{}
	}
	a.mu.Lock() // for tick
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(commentEvery, a.tick)
	return a
}

// allowEarly lets the answer to a slow POST begin before the SDK writes anything, if the
// client accepts frames. It is called once the message has come: one that is refused
// while it comes has a status of its own.
func (a *answer) allowEarly(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.early = strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream")
	a.timer.Reset(beginWithin)
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.own }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beginLocked(status, a.own)
}

// beginLocked sends the headers, unless they are sent.
func (a *answer) beginLocked(status int, header http.Header) {
	if a.begun {
		a.bare = a.bare || a.sse && status != http.StatusOK // an error in JSON, see Write
		return
	}
	a.begun = true
	a.sse = strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")
	there := a.w.Header()
	clear(there)
	maps.Copy(there, header)
	if a.sse {
		there.Set("X-Accel-Buffering", "no") // nginx passes each frame on at once
	}
	a.w.WriteHeader(status)
}

// Write implements http.ResponseWriter. What the SDK writes as an error, in JSON or as a
// line of text, becomes a frame if the headers of frames are sent.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beginLocked(http.StatusOK, a.own)
	a.timer.Reset(commentEvery)
	shown := p
	if a.ids != "" {
		shown = a.ids.out(p)
	}
	var err error
	if a.bare {
		if !json.Valid(shown) {
			shown = refusal(nil, jsonrpc.CodeInvalidRequest, strings.TrimSpace(string(shown)))
		}
		err = a.frameLocked(shown)
	} else {
		_, err = a.w.Write(shown)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beginLocked(http.StatusOK, a.own)
	_ = a.control.Flush()
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.w }

// send writes a message as one frame. It fails after end.
func (a *answer) send(message []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return errStreamOver
	}
	a.beginLocked(http.StatusOK, framesHeader)
	a.timer.Reset(commentEvery)
	return a.frameLocked(message)
}

// refuse answers a message that the SDK does not get.
func (a *answer) refuse(status int, id json.RawMessage, why string) {
	a.own.Set("Content-Type", "application/json")
	a.WriteHeader(status)
	_, _ = a.Write(refusal(id, jsonrpc.CodeInvalidRequest, why)) // fails only with the connection
}

// framesHeader is the header of an answer that begins before the SDK has written
// anything.
var framesHeader = http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache, no-transform"}, "Connection": {"keep-alive"}}

func (a *answer) frameLocked(message []byte) error {
	return a.writeLocked(slices.Concat([]byte("event: message\ndata: "), message, []byte("\n\n")))
}

// writeLocked writes a whole frame or comment, for which the client has frameTimeout.
func (a *answer) writeLocked(p []byte) error {
	_ = a.control.SetWriteDeadline(time.Now().Add(frameTimeout)) // fails for a writer without deadlines
	defer func() { _ = a.control.SetWriteDeadline(time.Time{}) }()
	if _, err := a.w.Write(p); err != nil {
		return err
	}
	return a.control.Flush()
}

// tick runs when the answer was silent for a while.
func (a *answer) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended || !a.begun && !a.early || a.begun && !a.sse:
		return
	case !a.begun:
		a.beginLocked(http.StatusOK, framesHeader)
	}
	if a.writeLocked([]byte(": waiting\n\n")) == nil { // otherwise the client is gone
		a.timer.Reset(commentEvery)
	}
}

// end makes further calls of send fail. It returns when nothing is written any more.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.timer.Stop()
}
