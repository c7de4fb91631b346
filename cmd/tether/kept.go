package main

import (
	"fmt"
	"time"

	"tether/agent/config"
	"tether/agent/local"
	"tether/cmd/tether/internal/display"
)

// sayKept names the offline hosts that may still show a terminal whose sharing has ended, and until when.
func (a *app) sayKept(ts ...local.Terminal) {
	type kept struct {
		terminals int
		until     time.Time
	}
	var hosts []string
	at := map[string]*kept{}
	for _, t := range ts {
		for _, k := range t.Kept {
			if at[k.Host] == nil {
				at[k.Host] = &kept{}
				hosts = append(hosts, k.Host)
			}
			one := at[k.Host]
			one.terminals++
			if k.Until.After(one.until) {
				one.until = k.Until
			}
		}
	}
	for _, host := range hosts {
		one := at[host]
		what := "it"
		if one.terminals > 1 {
			what = fmt.Sprintf("these %d terminals", one.terminals)
		}
		a.notice("%s is offline and may still show what it has of %s; it deletes that when it reconnects, at %s at the latest", display.Printable(host, 70), what, display.Clock(one.until))
	}
}

// hostKeeps says what a host may keep of terminals while this machine is away, "" if that is nothing.
func hostKeeps(h local.HostStatus) string {
	if h.Park > 0 {
		return "keeps shared text for up to " + config.Duration(time.Duration(h.Park)*time.Millisecond).String() + " while this machine is away"
	}
	lent, until := 0, h.KeptUntil
	for _, l := range h.Lent {
		if l.KeptUntil.IsZero() {
			continue
		}
		lent++
		if l.KeptUntil.After(until) {
			until = l.KeptUntil
		}
	}
	if lent+h.Withdrawn == 0 {
		return ""
	}
	text := fmt.Sprintf("may keep the text of %s while it is offline, until %s", display.Count(lent+h.Withdrawn, "terminal"), display.Clock(until))
	if h.Withdrawn > 0 {
		text += fmt.Sprintf("; %d no longer shared, which it deletes when it reconnects", h.Withdrawn)
	}
	return text
}
