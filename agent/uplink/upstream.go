package uplink

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"tether/ahp"
	"tether/internal/clip"
	"tether/internal/lazyregexp"
	"tether/jsonrpc"
)

// onNotification handles acknowledgements of a host with resume, and passes messages that
// do not concern terminals to the tools. It runs on the connection's read goroutine.
func (s *session) onNotification(method string, params []byte) {
	s.hearing()
	if method == ahp.MethodObservers && s.live.Load() {
		s.watched(params)
		return
	}
	if method == ahp.MethodWatchers && s.live.Load() {
		s.watchers(params)
		return
	}
	if method != ahp.MethodAck {
		if tools := s.link.opts.Tools; tools != nil {
			tools.Notification(method, params)
		}
		return
	}
	if !s.live.Load() || !s.marker.Resume {
		return
	}
	var p ahp.AckParams
	if ahp.DecodeParams(params, &p) != nil {
		return
	}
	if le := s.link.byURI(p.Channel); le != nil {
		s.link.setAcked(le, p.Applied)
	}
}

// watched records how many observers watch a terminal.
func (s *session) watched(params []byte) {
	var p ahp.ObserversParams
	if ahp.DecodeParams(params, &p) != nil {
		return
	}
	if le := s.link.byURI(p.Channel); le != nil {
		count := int(p.Count)
		s.link.update(le, func(le *lending) { le.observers = &count })
	}
}

// onEnvelope handles the host's actions on our terminals. It obeys only their disposal:
// observers may watch and dispose, nothing else. It runs on the connection's read
// goroutine.
func (s *session) onEnvelope(v ahp.EnvelopeView) {
	s.hearing()
	s.lastSeq.Store(max(s.lastSeq.Load(), v.ServerSeq))
	le := s.link.byURI(v.Channel)
	if le == nil {
		if tools := s.link.opts.Tools; tools != nil {
			tools.Envelope(v)
		}
		return
	}
	mine := v.HasOrigin && v.Origin.ClientID == s.link.opts.ClientID
	switch {
	case mine && v.Rejected:
		s.rejected(le, v)
	case mine || v.Rejected:
		// Our own action echoed, or another client's refused: nothing to do.
	case v.Kind == ahp.ActionTerminalExited: // in a replay it means the loss of the former connection
		if s.live.Load() {
			s.hear(le)
		}
	case v.Kind == ahp.ActionTerminalData:
		s.trial.heard()
	case v.Kind == ahp.ActionTerminalInput, v.Kind == ahp.ActionTerminalResized,
		v.Kind == ahp.ActionTerminalCleared, v.Kind == ahp.ActionTerminalClaimed:
		s.link.mu.Lock()
		s.link.status.Refused++
		s.link.mu.Unlock()
	}
}

// rejected handles a refused action. If the host refuses output, the terminal is not
// published any more; a host that refuses only titles and the like does without them.
func (s *session) rejected(le *lending, v ahp.EnvelopeView) {
	switch v.Kind {
	case ahp.ActionTerminalOutput, ahp.ActionTerminalExited, ahp.ActionTerminalCleared:
		s.link.update(le, func(le *lending) {
			le.problem = "the host refused " + v.Kind + ": " + fit(v.RejectionReason, maxReason)
			s.link.roseLocked()
		})
		le.signal()
	}
	s.log.Warn().Str("terminal", string(le.h.ID())).Str("action", fit(v.Kind, maxReason)).Msg("refused by the host")
}

// hear records that the host has ended a terminal of ours, for announce to settle. A host
// without resume may discover late that the former connection is dead, and then end that
// connection's terminals. Those URIs are not ours any more: this connection announces all
// terminals under other ones, see publisher.replace.
func (s *session) hear(le *lending) {
	s.link.mu.Lock()
	old := le.before && !s.marker.Resume
	s.link.mu.Unlock()
	if old {
		return
	}
	s.mu.Lock()
	s.ended = append(s.ended, le)
	s.mu.Unlock()
	s.rouse()
}

// settle carries out the host's disposals, as the person has configured.
func (s *session) settle() {
	s.mu.Lock()
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	for _, le := range ended {
		if !s.link.current(le) { // withdrawn meanwhile
			continue
		}
		if p := s.publishers[le.h.ID()]; p != nil {
			p.cancel()
		}
		s.link.update(le, func(le *lending) { le.created, le.before, le.finished = false, false, true })
		s.link.ends.Go(func() { s.dispose(le) })
	}
}

// dispose ends the lending and, if the person has configured that, the terminal. It
// continues after the end of the connection, because a disposal cannot be undone.
func (s *session) dispose(le *lending) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	killed, err := le.h.Dispose(ctx, s.link.opts.OnDispose)
	s.log.Info().Err(err).Str("terminal", string(le.h.ID())).Bool("killed", killed).Msg("disposed of by the host")
}

// Bounds of texts from a host that a person is shown, in bytes.
const (
	maxReason  = 200
	maxProblem = 400 // with our own words around it
)

// shownError makes the text of an error, which may contain a host's words, safe to show.
type shownError struct{ error }

// innards matches what a person should not see in a host's error message: paths of its
// file system, and all lines but the first, which name places in its program.
var innards = lazyregexp.New(`(?s)\n.*|(file://)?(/[^\s/:()'"]+){2,}[^\s()'"]*|[A-Za-z]:\\[^\s()'"]*`)

func (e shownError) Error() string {
	text := e.error.Error()
	if refused, ok := errors.AsType[*jsonrpc.Error](e.error); ok && refused.Message != "" {
		text = strings.ReplaceAll(text, refused.Message, innards().ReplaceAllString(refused.Message, "…"))
	}
	return fit(text, maxProblem)
}

func (e shownError) Unwrap() error { return e.error }

// fit makes a text from a host safe for our messages, which a terminal may show:
// printable and at most n bytes, with a mark where it was cut.
func fit(s string, n int) string {
	return clip.Marked(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s), n)
}
