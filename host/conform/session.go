package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
)

// maxSeen bounds the envelopes that a session keeps; the oldest are forgotten.
const maxSeen = 4096

// connectTime is how long connecting may take, even if Options.Timeout is shorter: a slow
// connection breaks no rule.
const connectTime = 30 * time.Second

// session is one connection with the messages that it received.
type session struct {
	conn *client.Conn
	id   string

	mu    sync.Mutex
	seen  []envelope
	last  int64 // greatest serverSeq received
	acked map[string]int64
	moved change.Signal // raised for each message
}

// envelope is a copy of a received envelope.
type envelope struct {
	channel  string
	rejected bool
	reason   string
	origin   string // clientId; "" if there is none
	seq      int64  // clientSeq
	action   ahp.Action
	kind     string
	text     string // of terminal/data
	raw      string
}

// open connects as id, with meta in initialize: ahp.NewClientMeta for a client that
// offers the extension.
func (r *run) open(e client.Endpoint, id string, meta ahp.Meta) (*session, error) {
	return r.openAs(e, client.Options{ClientID: id, Meta: meta})
}

// reopen connects by reconnect, as the client id that was connected before.
func (r *run) reopen(e client.Endpoint, id string, before client.Resume) (*session, error) {
	return r.openAs(e, client.Options{ClientID: id, Resume: &before})
}

func (r *run) openAs(e client.Endpoint, o client.Options) (*session, error) {
	s := &session{id: o.ClientID, acked: map[string]int64{}}
	ctx, cancel := context.WithTimeout(r.ctx, max(r.opts.Timeout, connectTime))
	defer cancel()
	o.Info = ahp.Implementation{Name: "tether-host conform"}
	o.OnEnvelope, o.OnNotification = s.envelope, s.notification
	conn, err := r.opts.Connect(ctx, e, o)
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return s, nil
}

func (s *session) envelope(v ahp.EnvelopeView) {
	e := envelope{channel: v.Channel, rejected: v.Rejected, reason: v.RejectionReason, kind: v.Kind, raw: string(v.Action)}
	if v.HasOrigin {
		e.origin, e.seq = v.Origin.ClientID, v.Origin.ClientSeq
	}
	if a, err := ahp.DecodeAction(v.Action); err == nil {
		e.action = a
		if d, ok := a.(ahp.TerminalData); ok {
			e.text = d.Data
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, v.ServerSeq)
	if len(s.seen) >= maxSeen {
		s.seen = append(s.seen[:0], s.seen[maxSeen/2:]...)
	}
	s.seen = append(s.seen, e)
	s.moved.Raise()
}

func (s *session) notification(method string, params []byte) {
	var p ahp.AckParams
	if method != ahp.MethodAck || json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[p.Channel] = p.Applied
	s.moved.Raise()
}

// until waits until ok returns true. It calls ok with s.mu held.
func (r *run) until(s *session, what string, ok func() bool) error {
	return r.within(r.opts.Timeout, s, what, ok)
}

// within is until with another timeout.
func (r *run) within(timeout time.Duration, s *session, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	for {
		s.mu.Lock()
		done, moved := ok(), s.moved.Next()
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("no %[2]s within %[1]v", timeout, what)
		case <-s.conn.Done():
			return fmt.Errorf("the host closed the connection before %s: %w", what, s.conn.Err())
		}
	}
}

// settled sends a ping behind the dispatches of both sessions. When the pings are
// answered, the host has read the dispatches, and messages that it sent before the
// answers have arrived.
func (r *run) settled() error {
	for _, s := range []*session{r.owner, r.other, r.owner} {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
		err := s.conn.Barrier(ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("ping: %w", err)
		}
	}
	if r.opts.Settle != nil {
		return r.opts.Settle(r.ctx)
	}
	return nil
}

// textLocked returns all output that arrived in a channel, in order.
func (s *session) textLocked(channel string) string {
	var b strings.Builder
	for _, e := range s.seen {
		if e.channel == channel && !e.rejected {
			b.WriteString(e.text)
		}
	}
	return b.String()
}

// toldLocked reports whether an accepted action for which is returns true has arrived in
// a channel.
func (s *session) toldLocked(channel string, is func(ahp.Action) bool) bool {
	return slices.ContainsFunc(s.seen, func(e envelope) bool { return e.channel == channel && !e.rejected && e.action != nil && is(e.action) })
}

// hears waits until a session has received an action of the terminal for which is returns
// true.
func (r *run) hears(s *session, what string, is func(ahp.Action) bool) error {
	return r.until(s, what, func() bool { return s.toldLocked(r.uri, is) })
}

// answer waits for the envelope that answers a dispatch.
func (r *run) answer(s *session, seq int64) (envelope, error) {
	var found envelope
	err := r.until(s, "answer to a dispatch", func() bool {
		for _, e := range s.seen {
			if e.origin == s.id && e.seq == seq {
				found = e
				return true
			}
		}
		return false
	})
	return found, err
}

// refused dispatches actions, each of which the host must refuse with a reason.
func (r *run) refused(s *session, who string, all ...ahp.Action) error {
	for _, a := range all {
		seq, err := s.conn.Dispatch(r.ctx, r.uri, a)
		if err != nil {
			return err
		}
		e, err := r.answer(s, seq)
		switch {
		case err != nil:
			return fmt.Errorf("%s by %s: %w", a.Type(), who, err)
		case !e.rejected:
			return fmt.Errorf("%s by %s was accepted", a.Type(), who)
		case e.reason == "":
			return fmt.Errorf("%s by %s was refused without a reason", a.Type(), who)
		}
	}
	return nil
}

// state subscribes to the terminal and returns the state in the new snapshot.
func (r *run) state(s *session) (ahp.TerminalState, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
	defer cancel()
	var st ahp.TerminalState
	got, err := s.conn.Subscribe(ctx, r.uri)
	if err != nil {
		return st, fmt.Errorf("subscribe: %w", err)
	}
	if got.Snapshot == nil {
		return st, fmt.Errorf("subscribe: no snapshot")
	}
	s.mu.Lock()
	s.last = max(s.last, got.Snapshot.FromSeq)
	s.mu.Unlock()
	return st, json.Unmarshal(got.Snapshot.State, &st)
}

// listed subscribes to the root and returns the terminal's entry in the catalogue, nil if
// it has none.
func (r *run) listed(s *session) (*ahp.TerminalInfo, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
	defer cancel()
	got, err := s.conn.Subscribe(ctx, ahp.RootURI)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the root: %w", err)
	}
	if got.Snapshot == nil {
		return nil, errors.New("subscribe to the root: no snapshot")
	}
	var root ahp.RootState
	if err := json.Unmarshal(got.Snapshot.State, &root); err != nil {
		return nil, fmt.Errorf("the root's state: %w", err)
	}
	for _, t := range root.Terminals {
		if t.Resource == r.uri {
			return &t, nil
		}
	}
	return nil, nil
}

func (r *run) create(p ahp.CreateTerminalParams) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
	defer cancel()
	return r.owner.conn.CreateTerminal(ctx, p)
}
