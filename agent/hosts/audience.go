package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
)

// CheckAudience implements local.Hosts.
func (p *Paired) CheckAudience(ctx context.Context, host string, names []string) error {
	r := p.links.find(host)
	if r == nil {
		return NotPaired(host)
	}
	refused, err := r.link.CheckAudience(ctx, names)
	switch {
	case errors.Is(err, uplink.ErrOffline):
		return nil
	case errors.Is(err, uplink.ErrOpen):
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: fmt.Sprintf("the host %s cannot share a terminal with some alone: it shows shared terminals to everybody there", host)}
	case err != nil:
		return &localapi.Error{Code: localapi.CodeUnreachable, Message: fmt.Sprintf("the host %s did not say whether it takes these names: %v", host, err)}
	case len(refused) > 0:
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("the host %s does not take %s", host, strings.Join(refused, ", ")),
			Hint: "nothing was shared; names are NAME, group:NAME, agent:NAME or everyone"}
	}
	return nil
}

// AudienceTold implements local.Hosts.
func (p *Paired) AudienceTold(ctx context.Context, host string, h term.Handle) bool {
	r := p.links.find(host)
	return r != nil && r.link.AudienceTold(ctx, h)
}

// TakesTerminal implements local.Hosts.
func (p *Paired) TakesTerminal(ctx context.Context, host string, h term.Handle) error {
	r := p.links.find(host)
	if r == nil {
		return NotPaired(host)
	}
	err := r.link.TakesTerminal(ctx, h)
	if err == nil {
		return nil
	}
	e := &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: fmt.Sprintf("nothing was shared with %s: %v", host, err),
		Hint: "lend to a host that takes terminals of other machines, such as tether-host; after an update of this one: tether host retry " + host}
	if _, ok := errors.AsType[*ahp.VersionError](err); ok {
		e.Hint = wrongVersion
	}
	return e
}

// TakesPorts implements local.Hosts.
func (p *Paired) TakesPorts(host string) error {
	r := p.links.find(host)
	if r == nil {
		return NotPaired(host)
	}
	if err := r.link.TakesPorts(); errors.Is(err, uplink.ErrNoPorts) {
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: fmt.Sprintf("the host %s takes no ports of dev servers, only terminals", host)}
	}
	return nil // it may be offline
}

// TakesShares implements local.Hosts.
func (p *Paired) TakesShares(host string) error {
	r := p.links.find(host)
	if r == nil {
		return NotPaired(host)
	}
	return shareError(host, r.link.TakesShares())
}

// ShareTold implements local.Hosts.
func (p *Paired) ShareTold(ctx context.Context, host string, h term.Handle, id string) (base string, err error) {
	r := p.links.find(host)
	if r == nil {
		return "", NotPaired(host)
	}
	base, err = r.link.ShareTold(ctx, h, id)
	return base, shareError(host, err)
}

func shareError(host string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, uplink.ErrNoShares):
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: fmt.Sprintf("the host %s takes no links for guests", host)}
	case errors.Is(err, uplink.ErrOffline), errors.Is(err, context.DeadlineExceeded):
		return &localapi.Error{Code: localapi.CodeUnreachable, Message: fmt.Sprintf("the host %s cannot be reached, so no link was made", host), Hint: "tether status tells why"}
	case errors.Is(err, loans.ErrNotLent):
		return err
	}
	return &localapi.Error{Code: localapi.CodeRefused, Message: fmt.Sprintf("the host %s takes no link for this terminal: %v", host, err)}
}
