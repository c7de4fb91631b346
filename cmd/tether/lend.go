package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/agent/local"
	"tether/platform/dirs"
	"tether/platform/tty"
)

func lendCommand(a *app) *cobra.Command {
	var host string
	var during time.Duration
	c := &cobra.Command{
		Use: "lend ID… [--host NAME] [--for TIME]", Short: "let a host watch terminals", Args: someArgs(1, -1, "the id or name of a terminal"),
		Long: `let a host watch terminals: what they print from now on and what is kept of
what they printed. Nobody there can type. For a terminal that is lent already,
this changes when the lending ends.`,
		RunE: func(c *cobra.Command, refs []string) error {
			if during < 0 || c.Flags().Changed("for") && during < time.Millisecond {
				return usage(c, "--for %s must be more than 0, such as 1h", during)
			}
			return a.each(refs, func(client *local.Client, ref string) (local.Terminal, error) {
				t, err := client.Lend(c.Context(), ref, local.LendRequest{Host: host, ForMs: during.Milliseconds()})
				a.sayOffline(t)
				return t, err
			})
		},
	}
	c.Flags().StringVar(&host, "host", "", "the paired host `NAME` instead of the default one")
	c.Flags().DurationVar(&during, "for", 0, "end the lending after this `TIME`, such as 1h or 30m")
	return c
}

func unlendCommand(a *app) *cobra.Command {
	var host string
	var all bool
	c := &cobra.Command{
		Use: "unlend ID…|--all [--host NAME]", Short: "end the lending of terminals", Args: someArgs(0, -1, ""),
		Long: `end the lending of terminals. Nothing of what they print is sent from then on, and
the hosts are told to dispose of what they have. The terminals run on.`,
		RunE: func(c *cobra.Command, refs []string) error {
			switch {
			case all && len(refs) > 0:
				return usage(c, "it takes either terminals or --all")
			case !all && len(refs) == 0:
				return usage(c, "it needs the id or name of a terminal, or --all")
			case !all:
				return a.each(refs, func(client *local.Client, ref string) (local.Terminal, error) {
					return client.Unlend(c.Context(), ref, host)
				})
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			ended, err := client.UnlendAll(c.Context(), host)
			for _, t := range ended.Terminals {
				fmt.Fprintln(a.stdout, t.ID, lentPhrase(t))
			}
			if err == nil && len(ended.Terminals) == 0 {
				a.notice("no terminal was shared")
			}
			return err
		},
	}
	c.Flags().StringVar(&host, "host", "", "only the paired host `NAME`")
	c.Flags().BoolVar(&all, "all", false, "all terminals")
	return c
}

// each does something with every terminal that is named and says to whom it is lent then.
func (a *app) each(refs []string, do func(*local.Client, string) (local.Terminal, error)) error {
	client, _, err := a.client()
	if err != nil {
		return err
	}
	var errs []error // the first decides the exit status
	for _, ref := range refs {
		t, err := do(client, ref)
		if err != nil {
			errs = append(errs, about(ref, err))
			continue
		}
		fmt.Fprintln(a.stdout, t.ID, lentPhrase(t))
	}
	return errors.Join(errs...)
}

// lentPhrase says to whom a terminal is lent and until when.
func lentPhrase(t local.Terminal) string {
	if len(t.Loans) == 0 {
		return "is lent to nobody"
	}
	var hosts []string
	for _, l := range t.Loans {
		text := l.Host
		if l.Until != nil {
			text += " until " + clock(*l.Until)
		}
		hosts = append(hosts, text)
	}
	return "is lent to " + strings.Join(hosts, ", ")
}

// clock is a time as a person reads it: with the day only if it is not today.
func clock(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// lentText is to whom a terminal is lent, as a list shows it: host, since when, for how long yet, and how many watch where the host says
// so.
func lentText(t local.Terminal) string {
	switch {
	case t.Private:
		return "private"
	case len(t.Loans) == 0:
		return "-"
	}
	var hosts []string
	for _, l := range t.Loans {
		var more []string
		if l.Since.Sub(t.Started) > time.Second {
			more = append(more, "since "+ago(time.Since(l.Since)))
		}
		if l.Until != nil {
			more = append(more, ago(max(time.Until(*l.Until), 0))+" left")
		}
		if l.Observers != nil && *l.Observers > 0 {
			more = append(more, fmt.Sprintf("%d watching", *l.Observers))
		}
		if state, ok := loanStates[l.State]; ok {
			more = append(more, state)
		}
		text := l.Host
		if len(more) > 0 {
			text += " (" + strings.Join(more, ", ") + ")"
		}
		hosts = append(hosts, text)
	}
	return strings.Join(hosts, ", ")
}

// loanStates say in a list what keeps a lent terminal from being at its host.
var loanStates = map[string]string{local.LoanPending: "to be lent", local.LoanOffline: "offline", local.LoanRefused: "refused"}

// lentCount is how many of the terminals that are lent to a host it has.
func lentCount(h local.HostStatus) string {
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

// visibleText says who can watch a terminal that is lent, and where nobody can yet.
func visibleText(t local.Terminal) string {
	var visible, lent, more []string
	for _, l := range t.Loans {
		host := printable(l.Host, 70)
		until := ""
		if l.Until != nil {
			until = " until " + clock(*l.Until)
		}
		switch l.State {
		case local.LoanOffline:
			lent = append(lent, host+until)
			more = append(more, host+" is offline: output is sent when it is back")
		case local.LoanRefused:
			more = append(more, "is not visible to "+host+", which does not take it: tether status says why and when it is tried again")
		default:
			visible = append(visible, host+until+watchingText(l))
		}
	}
	var parts []string
	if len(visible) > 0 {
		parts = append(parts, "is visible to "+strings.Join(visible, ", "))
	}
	if len(lent) > 0 {
		parts = append(parts, "is lent to "+strings.Join(lent, ", "))
	}
	return strings.Join(append(parts, more...), "; ")
}

// watchingText is how many watch at a host. Nobody watches what the host does not have yet.
func watchingText(l local.Loan) string {
	switch {
	case l.Observers != nil:
		return fmt.Sprintf(" (%d watching)", *l.Observers)
	case l.State == local.LoanPending:
		return " (0 watching)"
	}
	return "" // the host does not say
}

// sayLent tells a person who takes a terminal in hand who can watch, unless they have switched that off.
func (a *app) sayLent(t local.Terminal) {
	if len(t.Loans) > 0 && tty.Is(a.stdin) && tty.Is(a.stdout) && wantsLent() {
		a.notice("%s %s; stop sharing: tether unlend %s", nameOf(t), visibleText(t), t.ID)
	}
}

// sayOffline says which of the hosts that a terminal is lent to are not there.
func (a *app) sayOffline(t local.Terminal) {
	for _, l := range t.Loans {
		if l.State == local.LoanOffline {
			a.notice("%s is offline: output is sent when it is back", printable(l.Host, 70))
		}
	}
}

// wantsLent reports whether the person wants to be told who can watch what they have in hand.
func wantsLent() bool {
	d, err := dirs.Get()
	if err != nil {
		return false
	}
	settings, err := config.Load(config.Path(d), fromEnv()...)
	return err == nil && settings.Lend.Notice
}

// sayNobody tells why a terminal that was started without a choice of hosts is not shared.
func (a *app) sayNobody(c *cobra.Command, client *local.Client, t local.Terminal) {
	status, err := client.Status(c.Context())
	paired := err == nil && slices.ContainsFunc(status.Hosts, func(h local.HostStatus) bool { return h.Default })
	switch {
	case paired && status.Root != nil && !status.Root.Lends:
		a.notice("%s is not shared, because the daemon runs as root; share it with: tether lend %s, or always with lend.as_root = true", nameOf(t), t.ID)
		return
	case paired:
		a.notice("%s is not shared, as configured; share it with: tether lend %s", nameOf(t), t.ID)
		return
	}
	why := "no host is paired; pair with one: tether pair URL"
	if err == nil && len(status.Hosts) > 0 {
		why = "no default host; choose one: tether host use NAME"
	}
	a.notice("%s is not shared: %s", nameOf(t), why)
}
