package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tether/agent/local"
	"tether/agent/term"
)

// ChangeHost renames a paired host, makes it the default one or switches its tools. A host that terminals are lent to keeps its name: they are lent to
// that name.
func (a *Agent) ChangeHost(ctx context.Context, name string, c local.HostChange) (local.HostStatus, error) {
	if err := a.takeTurn(ctx); err != nil {
		return local.HostStatus{}, err
	}
	defer a.giveTurn()
	h, ok := a.hosts.find(name)
	if !ok {
		return local.HostStatus{}, notPaired(name)
	}
	if c.Retry {
		a.links.retry(name)
		if c == (local.HostChange{Retry: true}) {
			return a.hostStatus(h), nil
		}
	}
	h.Default = h.Default || c.Default
	if c.Tools != nil {
		if h.ClientTools = *c.Tools; h.ClientTools && !a.settings.Uplink.ClientTools {
			return local.HostStatus{}, errToolsOff
		}
	}
	h.Name = cmp.Or(c.Name, name)
	if h.Name != name {
		if err := a.mayRename(name, h.Name); err != nil {
			return local.HostStatus{}, err
		}
	}
	if err := a.hosts.replace(name, h); err != nil {
		return local.HostStatus{}, err
	}
	if h.Name != name {
		a.links.stop(name)
		a.links.start(h, a.hosts.endpoint(h))
		a.log.Info().Str("host", name).Str("now", h.Name).Msg("renamed")
	}
	if c.Tools != nil {
		a.switchTools(h)
	}
	return a.hostStatus(h), nil
}

var errToolsOff = &local.Error{Code: local.CodeDenied, Message: "the configuration keeps tools from being offered to hosts",
	Hint: "see uplink.client_tools in the file that tether config path names"}

func (a *Agent) mayRename(from, to string) error {
	if !hostName().MatchString(to) {
		return badName(to)
	}
	if other, ok := a.hosts.find(to); ok {
		return &local.Error{Code: local.CodePaired, Message: fmt.Sprintf("%q is the name of %s", to, other.URL), Hint: "tether host ls shows all names"}
	}
	lent := slices.ContainsFunc(a.pool.As(term.User).List(), func(h term.Handle) bool { return h.Info().LentToHost(from) })
	if lent {
		return &local.Error{Code: local.CodeExists, Message: fmt.Sprintf("terminals are lent to %q under that name", from),
			Hint: "first: tether unlend --all --host " + from}
	}
	return nil
}

func badName(name string) error {
	return bad("host name %.70q must be 1 to 64 letters, digits, dots, dashes or underscores", name)
}
