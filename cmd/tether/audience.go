package main

import (
	"tether/agent/local"
	"tether/cmd/tether/internal/display"
)

// meansText describes the meaning of lending at a host, "" if unknown.
func meansText(h local.HostStatus) string {
	switch {
	case h.LentMeans == local.LentToEverybody:
		return "shared terminals are shown to everybody at this host"
	case h.LentMeans == local.LentToAudience && h.Owner == "":
		return "shared terminals are shown to those whom you name; the host says that this machine has no owner there"
	case h.LentMeans == local.LentToAudience:
		return "shared terminals are shown to " + display.Printable(h.Owner, 70) + ", to whom this machine belongs as the host says, and to those whom you name"
	case h.State == "online":
		return ""
	}
	return "while it is " + h.State + ", it is not known who there would see shared terminals"
}

// sayGranted describes the effect of a grant.
func (a *app) sayGranted(t local.Terminal, to []string, fromNow bool) {
	shown := "all retained output and what follows"
	if fromNow {
		shown = "only later output"
	}
	a.notice("%s may watch %s: %s is shown, and nobody can type", display.Names(to), display.NameOf(t), shown)
}

// sayStill names the hosts that do not yet know who may no longer watch.
func (a *app) sayStill(t local.Terminal) {
	for _, l := range t.Loans {
		if l.State == local.LoanOffline {
			a.notice("%s is offline; until it reconnects it shows the terminal as before", display.Printable(l.Host, 70))
		}
	}
}
