package display

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/ahp"
	"tether/vocab"
)

// Lent says with whom a terminal is shared, in the few words that a column of a list has:
// each host with the number of watchers, the time left, the first of the people whom the
// person has named, and the state.
func Lent(t localapi.Terminal) string {
	return loansText(t, func(l localapi.Loan) (more []string) {
		if n := watching(l); n > 0 {
			more = append(more, strconv.Itoa(n))
		}
		if l.Audience != nil && l.Audience.GuestsOnly {
			more = append(more, "to guests only")
		} else if l.Audience != nil && len(l.Audience.To) > 0 {
			more = append(more, "to "+Printable(l.Audience.To[0], 20))
			if others := len(l.Audience.To) - 1; others > 0 {
				more[len(more)-1] += fmt.Sprintf(" and %d more", others)
			}
		}
		return append(more, portNames(l.Ports)...)
	})
}

// LentInFull is Lent with what takes more room: since when the terminal is shared, the
// whole audience, and who watches since when, as far as the host says.
func LentInFull(t localapi.Terminal) string {
	return loansText(t, func(l localapi.Loan) (more []string) {
		if l.Since.Sub(t.Started) > time.Second {
			more = append(more, "since "+Ago(time.Since(l.Since)))
		}
		if to := audienceText(l.Audience); to != "" {
			more = append(more, to)
		}
		if who := whoText(l.Watchers); who != "" {
			more = append(more, fmt.Sprintf("%d watching, as the host says: %s", watchers(l.Watchers), who))
		} else if n := watching(l); n > 0 {
			more = append(more, fmt.Sprintf("%d watching", n))
		}
		for _, p := range l.Ports {
			more = append(more, PortInFull(p))
		}
		return more
	})
}

// loansText lists the hosts of a terminal, each with more, the time left and the state.
func loansText(t localapi.Terminal, more func(localapi.Loan) []string) string {
	switch {
	case t.Private:
		return "private"
	case len(t.Loans) == 0:
		return "-"
	}
	var hosts []string
	for _, l := range t.Loans {
		parts := more(l)
		if l.Until != nil {
			parts = append(parts, Ago(max(time.Until(*l.Until), 0))+" left")
		}
		if state, ok := loanStates[l.State]; ok {
			parts = append(parts, state)
		}
		text := l.Host
		if len(parts) > 0 {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		hosts = append(hosts, text)
	}
	return strings.Join(hosts, ", ")
}

// watching returns the number of watchers of a loan, 0 if the host does not say.
func watching(l localapi.Loan) int {
	if l.Watchers != nil && len(l.Watchers.Watching) > 0 {
		return watchers(l.Watchers)
	}
	if l.Observers != nil {
		return *l.Observers
	}
	return 0
}

// loanStates are the words for the states in which a host does not have a shared
// terminal.
var loanStates = map[string]string{localapi.LoanPending: "pending", localapi.LoanOffline: "offline", localapi.LoanRefused: "refused"}

// SharedWith says with whom a terminal is shared, and until when.
func SharedWith(t localapi.Terminal) string {
	if len(t.Loans) == 0 {
		return "is not shared"
	}
	var hosts []string
	for _, l := range t.Loans {
		text := l.Host
		if l.Until != nil {
			text += " until " + Clock(*l.Until)
		}
		if to := audienceText(l.Audience); to != "" {
			text += " (" + to + ")"
		}
		for i, p := range l.Ports {
			text += map[bool]string{true: ", with ", false: ", "}[i == 0] + portText(p)
		}
		hosts = append(hosts, text)
	}
	return "is shared with " + strings.Join(hosts, ", ")
}

// Visible says who can watch a shared terminal, and which hosts cannot yet.
func Visible(t localapi.Terminal) string {
	var visible, lent, more []string
	for _, l := range t.Loans {
		host := Printable(l.Host, 70)
		until := ""
		if l.Until != nil {
			until = " until " + Clock(*l.Until)
		}
		switch l.State {
		case localapi.LoanOffline:
			lent = append(lent, host+until)
			more = append(more, host+" is offline; output is sent when it reconnects")
		case localapi.LoanRefused:
			more = append(more, "is not visible to "+host+", which refuses it; tether status shows the reason and the next attempt")
		default:
			visible = append(visible, host+until+watchingText(l))
		}
	}
	var parts []string
	if len(visible) > 0 {
		parts = append(parts, "is visible to "+strings.Join(visible, ", "))
	}
	if len(lent) > 0 {
		parts = append(parts, "is shared with "+strings.Join(lent, ", "))
	}
	return strings.Join(append(parts, more...), "; ")
}

// watchingText describes the watchers at a host. A pending loan has no watchers, because
// the host does not have the terminal yet.
func watchingText(l localapi.Loan) string {
	switch {
	case l.Watchers != nil:
		return " (" + Claim(l.Watchers) + ")"
	case l.Observers != nil:
		return fmt.Sprintf(" (%d watching)", *l.Observers)
	case l.State == localapi.LoanPending:
		return " (0 watching)"
	}
	return "" // the host does not say
}

// Names lists at most shownNames names, and the number of the others.
func Names(names []string) string {
	var all []string
	for _, name := range names[:min(len(names), shownNames)] {
		all = append(all, Printable(name, 70))
	}
	if more := len(names) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// audienceText describes the audience that the person has named at a host. It returns ""
// if the person has named nobody.
func audienceText(a *localapi.Audience) string {
	if a == nil {
		return ""
	}
	var parts []string
	if len(a.To) > 0 {
		parts = append(parts, "to "+Names(a.To))
	}
	if len(a.FromNow) > 0 {
		parts = append(parts, "new output only for "+Names(a.FromNow))
	}
	if len(a.NotTo) > 0 {
		parts = append(parts, "not to "+Names(a.NotTo))
	}
	if a.GuestsOnly {
		parts = append(parts, "to guests only")
	}
	return strings.Join(parts, "; ")
}

// whoText says who watches at a host, and since when. It returns "" if the host names
// nobody.
func whoText(w *vocab.Watchers) string {
	if w == nil || len(w.Watching) == 0 {
		return ""
	}
	var all []string
	for _, one := range w.Watching[:min(len(w.Watching), shownNames)] {
		name := Printable(one.Who, 70)
		if one.Kind != "person" {
			name += " (" + Printable(one.Kind, 10) + ")"
		}
		all = append(all, name+" since "+Clock(one.Since))
	}
	if more := w.More + len(w.Watching) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// watchers returns the number of watchers that a host reports.
func watchers(w *vocab.Watchers) int { return len(w.Watching) + w.More }

// Claim describes a host's report of who watches a terminal and who may. It says that
// names come from the host. It returns "" without a report. It does not say that
// everybody at the host may watch, because lending without names means that.
func Claim(w *vocab.Watchers) string {
	if w == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d watching", watchers(w))}
	if who := whoText(w); who != "" {
		parts[0] += ": " + who
	}
	if len(w.May) > 0 && !slices.Equal(w.May, []string{ahp.ToEveryone}) {
		parts = append(parts, "may watch: "+Names(w.May))
	}
	if len(w.Refused) > 0 {
		parts = append(parts, "does not know: "+Names(w.Refused))
	}
	if len(parts) > 1 || len(w.Watching) > 0 {
		parts = append(parts, "as the host says")
	}
	return strings.Join(parts, "; ")
}

// Counts describes the numbers of terminals. Of lent ones, it separates those that a host
// has from those that it will get.
func Counts(c localapi.Count) string {
	lent := fmt.Sprintf("%d lent", c.Lent)
	if c.There != c.Lent {
		lent = fmt.Sprintf("%d lent, %d to be lent", c.There, c.Lent-c.There)
	}
	if c.Awaits > 0 {
		lent += fmt.Sprintf(", %d awaiting you: tether ls", c.Awaits)
	}
	if c.NotReady > 0 {
		lent += fmt.Sprintf(", %d not ready: tether ls", c.NotReady)
	}
	return fmt.Sprintf("%d running (%s), %d exited", c.Running, lent, c.Exited)
}

// LentCount returns the number of terminals shared with a host or, if the host does not
// have all of them, "2 of 3".
func LentCount(h localapi.HostStatus) string {
	there := 0
	for _, l := range h.Lent {
		if l.There {
			there++
		}
	}
	if there == len(h.Lent) {
		return strconv.Itoa(there)
	}
	return fmt.Sprintf("%d of %d", there, len(h.Lent))
}
