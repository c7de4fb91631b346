package conform

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/ahp"
)

// disposedByOthers lets the other client dispose of a terminal. AHP lets any client do
// that; some hosts refuse it by role.
func (r *run) disposedByOthers() error {
	r.text = 0
	r.uri += "-2"
	if err := r.create(r.terminal(r.forAll())); err != nil {
		return err
	}
	if err := r.settled(); err != nil {
		return err
	}
	err := r.other.conn.DisposeTerminal(r.ctx, r.uri)
	if code(err) == ahp.CodePermissionDenied {
		if err := r.dispose(); err != nil {
			return err
		}
		return skip("the second client may not dispose of the terminal")
	}
	if err != nil {
		return err
	}
	if err := r.until(r.owner, "terminal/exited for the owner", func() bool {
		return slices.ContainsFunc(r.owner.seen, func(e envelope) bool { return e.channel == r.uri && e.kind == ahp.ActionTerminalExited })
	}); err != nil {
		return err
	}
	return r.unlisted()
}

// departs makes a terminal as a client that does not offer the extension, and ends its
// connection. It waits for the grace time, too, because a host may have one for such
// clients.
func (r *run) departs() error {
	r.text = 0
	r.uri += "-3"
	id := "conform-" + rand.Text()[:12]
	s, err := r.open(r.opts.Endpoint, id, nil)
	if err != nil {
		return fmt.Errorf("a third client: %w", err)
	}
	defer s.conn.Close()
	p := r.terminal(r.forAll())
	p.Claim = ahp.ClientClaim(id)
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
	defer cancel()
	if err := s.conn.CreateTerminal(ctx, p); err != nil {
		return err
	}
	if err := r.settled(); err != nil {
		return err
	}
	if _, err := r.state(r.other); err != nil {
		return err
	}
	s.conn.Close()
	grace := time.Duration(r.marker.GraceMs) * time.Millisecond
	if err := r.exitsWithin(grace+r.opts.Timeout, r.other, -1); err != nil {
		return err
	}
	return r.unlisted()
}

// unlisted returns an error if the terminal is still in the catalogue.
func (r *run) unlisted() error {
	info, err := r.listed(r.other)
	if err == nil && info != nil {
		err = errors.New("the terminal is still in the catalogue")
	}
	return err
}

// longest prints as much text in one action as the marker allows, but at most
// ahp.DefaultMaxDataBytes.
func (r *run) longest() error {
	n := int(min(r.marker.MaxDataBytes, ahp.DefaultMaxDataBytes))
	if n <= 0 {
		return skip("the marker has no maxDataBytes")
	}
	text := strings.Repeat("0123456789abcdef", n/16)
	if err := r.print(text); err != nil {
		return err
	}
	return r.until(r.other, fmt.Sprintf("terminal/data with all %d bytes", len(text)), func() bool {
		return strings.HasSuffix(r.other.textLocked(r.uri), text)
	})
}

func (r *run) clears() error {
	if err := r.act(ahp.TerminalCleared{}); err != nil {
		return err
	}
	if err := r.hears(r.other, "terminal/cleared for the others", func(a ahp.Action) bool { return a == ahp.Action(ahp.TerminalCleared{}) }); err != nil {
		return err
	}
	if err := r.print("cleared\r\n"); err != nil {
		return err
	}
	st, err := r.state(r.other)
	if err == nil && st.Text() != "cleared\r\n" {
		err = fmt.Errorf("the state has %.100q", st.Text())
	}
	return err
}

func (r *run) unsubscribes() error {
	return r.unsubscribed(func() error { return r.print("unseen\r\n") })
}

// unsubscribed unsubscribes the other client and calls print, which prints text that ends
// with "unseen". The other client must not receive it.
func (r *run) unsubscribed(print func() error) error {
	if err := r.other.conn.Unsubscribe(r.ctx, r.uri); err != nil {
		return err
	}
	if err := r.settled(); err != nil {
		return err
	}
	if err := print(); err != nil {
		return err
	}
	if err := r.settled(); err != nil { // a snapshot would take the place of what is not sent yet
		return err
	}
	st, err := r.state(r.other)
	if err != nil {
		return err
	}
	r.other.mu.Lock()
	defer r.other.mu.Unlock()
	if !strings.Contains(st.Text(), "unseen\r") || strings.Contains(r.other.textLocked(r.uri), "unseen\r") {
		return errors.New("the client received output after it unsubscribed")
	}
	return nil
}
