package uplink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/ahp"
	"tether/jsonrpc"
)

// maxShareURL bounds the address from a host, in bytes.
const maxShareURL = 512

var errPortShares = errors.New("it is too old to show ports to guests")

// shareAnswer is the host's answer about a share on this connection.
type shareAnswer struct {
	url string
	err error
}

// tellShares tells the host, on this connection, about shares of a loan that it was not
// told yet, and about ended ones. A refusal is recorded; it does not stop the others.
func (s *session) tellShares(ctx context.Context, le *lending, loan *loans.Loan) error {
	if !s.marker.Shares {
		return nil
	}
	for i := range loan.Shares {
		if err := s.tellShare(ctx, le, &loan.Shares[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) tellShare(ctx context.Context, le *lending, share *loans.Share) error {
	peer := s.conn.Peer()
	if share.Ended {
		err := peer.CallBulk(ctx, ahp.MethodUnshare, ahp.UnshareParams{Channel: le.uri, ID: share.ID}, nil)
		if _, refused := errors.AsType[*jsonrpc.Error](err); err != nil && !refused {
			return fmt.Errorf("end a link: %w", err)
		}
		le.h.ForgetShare(share.ID)
		return nil
	}
	s.link.mu.Lock()
	_, told := le.shares[share.ID]
	s.link.mu.Unlock()
	if told || !time.Now().Before(share.Until) {
		return nil
	}
	if share.Port != 0 && !s.marker.Ports { // it would show the terminal
		s.shareTold(le, share.ID, shareAnswer{err: errPortShares})
		return nil
	}
	var result ahp.ShareResult
	err := peer.CallBulk(ctx, ahp.MethodShare, ahp.ShareParams{Channel: le.uri, ID: share.ID, SecretHash: share.SecretHash,
		ExpiresAt: share.Until.UTC(), Once: share.Once, Port: int64(share.Port)}, &result)
	if _, refused := errors.AsType[*jsonrpc.Error](err); err != nil && !refused {
		return fmt.Errorf("say who has a link: %w", err)
	}
	said := shareAnswer{url: result.URL}
	switch {
	case err != nil:
		said = shareAnswer{err: shownError{err}}
	case !shareURL(result.URL):
		said.url = "" // as if the host did not know its address
	}
	s.shareTold(le, share.ID, said)
	return nil
}

// shareTold records the host's answer about a share.
func (s *session) shareTold(le *lending, id string, said shareAnswer) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if le.shares == nil {
		le.shares = map[string]shareAnswer{}
	}
	le.shares[id] = said
}

// shareURL reports whether url is an acceptable beginning of a link. The link is printed,
// and a person opens it.
func shareURL(url string) bool {
	plain := strings.IndexFunc(url, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
	return plain && len(url) <= maxShareURL && (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")) &&
		strings.HasSuffix(url, "#") && strings.Count(url, "#") == 1
}

// TakesShares returns nil if the host accepts links for guests, else ErrOffline or
// ErrNoShares.
func (l *Link) TakesShares() error {
	s, err := l.online()
	if err == nil && !s.marker.Shares {
		err = ErrNoShares
	}
	return err
}

// ShareTold waits until the host knows a share of the terminal, and returns the address
// of its page for guests, "" if the host did not give one. Errors: ErrOffline, the host's
// error, loans.ErrNotLent, or ctx's.
func (l *Link) ShareTold(ctx context.Context, h term.Handle, id string) (url string, err error) {
	for {
		if _, lent := h.Loan(l.opts.Name); !lent {
			return "", loans.ErrNotLent
		}
		l.mu.Lock()
		next, online := l.announced.Next(), l.session != nil
		var said shareAnswer
		told := false
		if le := l.lendings[h.ID()]; le != nil {
			said, told = le.shares[id]
		}
		l.mu.Unlock()
		switch {
		case told:
			return said.url, said.err
		case !online:
			return "", ErrOffline
		}
		select {
		case <-next:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
