package hosts

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tether/agent/localapi"
	"tether/agent/term"
)

// ChangeHost renames a paired host, makes it the default one or switches its tools. A
// host to which terminals are lent cannot be renamed, because they are lent to its name.
func (p *Paired) ChangeHost(ctx context.Context, name string, c localapi.HostChange) (localapi.HostStatus, error) {
	if err := p.takeTurn(ctx); err != nil {
		return localapi.HostStatus{}, err
	}
	defer p.giveTurn()
	h, ok := p.store.find(name)
	if !ok {
		return localapi.HostStatus{}, NotPaired(name)
	}
	if c.Retry {
		p.links.retry(name)
		if c == (localapi.HostChange{Retry: true}) {
			return p.hostStatus(h), nil
		}
	}
	h.Default = h.Default || c.Default
	if c.Tools != nil {
		if h.ClientTools = *c.Tools; h.ClientTools && !p.opts.Uplink.ClientTools {
			return localapi.HostStatus{}, errToolsOff
		}
	}
	h.Name = cmp.Or(c.Name, name)
	if h.Name != name {
		if err := p.mayRename(name, h.Name); err != nil {
			return localapi.HostStatus{}, err
		}
	}
	if err := p.store.replace(name, h); err != nil {
		return localapi.HostStatus{}, err
	}
	if h.Name != name {
		p.links.stop(name)
		p.links.start(h, p.store.endpoint(h))
		p.opts.Logger.Info().Str("host", name).Str("now", h.Name).Msg("renamed")
	}
	if c.Tools != nil {
		p.switchTools(h)
	}
	return p.hostStatus(h), nil
}

var errToolsOff = &localapi.Error{Code: localapi.CodeDenied, Message: "the configuration keeps tools from being offered to hosts",
	Hint: "see uplink.client_tools in the file that tether config path names"}

func (p *Paired) mayRename(from, to string) error {
	if !hostName().MatchString(to) {
		return badName(to)
	}
	if other, ok := p.store.find(to); ok {
		return &localapi.Error{Code: localapi.CodePaired, Message: fmt.Sprintf("%q is the name of %s", to, other.URL), Hint: "tether host ls shows all names"}
	}
	lent := slices.ContainsFunc(p.pool.As(term.User).List(), func(h term.Handle) bool { return h.Info().LentToHost(from) })
	if lent {
		return &localapi.Error{Code: localapi.CodeExists, Message: fmt.Sprintf("terminals are lent to %q under that name", from),
			Hint: "first: tether unlend --all --host " + from}
	}
	return nil
}

func badName(name string) error {
	return localapi.BadRequest("host name %.70q must be 1 to 64 letters, digits, dots, dashes or underscores", name)
}

// NotPaired is the error for a host that is not paired.
func NotPaired(name string) error {
	return &localapi.Error{Code: localapi.CodeNotPaired, Message: fmt.Sprintf("no host %q is paired", name),
		Hint: "tether status lists the hosts"}
}
