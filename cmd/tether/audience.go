package main

import (
	"fmt"
	"slices"
	"strings"

	"tether/agent/local"
	"tether/ahp"
)

// shownNames is the number of a host's names that a list shows; the rest is a number.
const shownNames = 8

// namesText lists names for people.
func namesText(names []string) string {
	var all []string
	for _, name := range names[:min(len(names), shownNames)] {
		all = append(all, printable(name, 70))
	}
	if more := len(names) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// audienceText says with whom at a host the person has shared a terminal, "" if nobody was named.
func audienceText(a *local.Audience) string {
	if a == nil {
		return ""
	}
	var parts []string
	if len(a.To) > 0 {
		parts = append(parts, "to "+namesText(a.To))
	}
	if len(a.FromNow) > 0 {
		parts = append(parts, "new output only for "+namesText(a.FromNow))
	}
	if len(a.NotTo) > 0 {
		parts = append(parts, "not to "+namesText(a.NotTo))
	}
	if a.GuestsOnly {
		parts = append(parts, "to guests only")
	}
	return strings.Join(parts, "; ")
}

// whoText says who watches at a host, and since when; "" if the host does not name anybody.
func whoText(w *local.Watchers) string {
	if w == nil || len(w.Watching) == 0 {
		return ""
	}
	var all []string
	for _, one := range w.Watching[:min(len(w.Watching), shownNames)] {
		name := printable(one.Who, 70)
		if one.Kind != "person" {
			name += " (" + printable(one.Kind, 10) + ")"
		}
		all = append(all, name+" since "+clock(one.Since))
	}
	if more := w.More + len(w.Watching) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// watchers is how many watch at a host, as it says.
func watchers(w *local.Watchers) int { return len(w.Watching) + w.More }

// claimText is a host's report of who watches a terminal and who may, with names marked as the host's; "" if there is none. It omits that
// everybody at the host may watch, because lending without names means that.
func claimText(w *local.Watchers) string {
	if w == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d watching", watchers(w))}
	if who := whoText(w); who != "" {
		parts[0] += ": " + who
	}
	if len(w.May) > 0 && !slices.Equal(w.May, []string{ahp.ToEveryone}) {
		parts = append(parts, "may watch: "+namesText(w.May))
	}
	if len(w.Refused) > 0 {
		parts = append(parts, "does not know: "+namesText(w.Refused))
	}
	if len(parts) > 1 || len(w.Watching) > 0 {
		parts = append(parts, "as the host says")
	}
	return strings.Join(parts, "; ")
}

// meansText describes the meaning of lending at a host, "" if unknown.
func meansText(h local.HostStatus) string {
	switch {
	case h.LentMeans == local.LentToEverybody:
		return "shared terminals are shown to everybody at this host"
	case h.LentMeans == local.LentToAudience && h.Owner == "":
		return "shared terminals are shown to those whom you name; the host says that this machine has no owner there"
	case h.LentMeans == local.LentToAudience:
		return "shared terminals are shown to " + printable(h.Owner, 70) + ", to whom this machine belongs as the host says, and to those whom you name"
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
	a.notice("%s may watch %s: %s is shown, and nobody can type", namesText(to), nameOf(t), shown)
}

// sayStill names the hosts that do not yet know who may no longer watch.
func (a *app) sayStill(t local.Terminal) {
	for _, l := range t.Loans {
		if l.State == local.LoanOffline {
			a.notice("%s is offline; until it reconnects it shows the terminal as before", printable(l.Host, 70))
		}
	}
}
