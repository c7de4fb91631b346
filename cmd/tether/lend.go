package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/platform/dirs"
	"tether/vocab"
)

func lendCommand(a *app) *cobra.Command {
	var host string
	var during time.Duration
	var to, ports []string
	var fromNow, write bool
	c := &cobra.Command{
		Use: "lend ID… [--host NAME] [--to NAME,… [--from-now]] [--port PORT,… [--write]] [--for TIME]", Short: "share terminals with a host", Args: someArgs(1, -1, "the id or name of a terminal"),
		Long: `share terminals with a host, read-only: the host's users see the retained and the new
output, and cannot type. For a terminal that is already shared, the command changes
when the sharing ends.

At a host that keeps people apart (tether status says so), only the owner of this machine
there sees it, and whoever --to names: NAME, group:NAME, agent:NAME, or everyone with a
token or a login. They see all retained output, unless --from-now is given.

With --port, whoever may watch may also fetch pages of a dev server that runs in the
terminal: on that port, or on all on which its programs will listen (auto). --for is
then the port's time, if the terminal is shared already. Without --write, only GET, HEAD
and OPTIONS are let through. See docs/DEV-SERVERS.md.`,
		RunE: func(c *cobra.Command, refs []string) error {
			if c.Flags().Changed("to") && len(to) == 0 {
				return usage(c, "--to is empty: name people, or leave it out")
			}
			if fromNow && len(to) == 0 {
				return usage(c, "--from-now needs --to")
			}
			if c.Flags().Changed("port") && len(ports) == 0 {
				return usage(c, "--port is empty: give numbers, or auto")
			}
			if write && len(ports) == 0 {
				return usage(c, "--write needs --port")
			}
			if during < 0 || c.Flags().Changed("for") && during < time.Millisecond {
				return usage(c, "--for %s must be more than 0, such as 1h", during)
			}
			return a.each(refs, func(client *localclient.Client, ref string) (localapi.Terminal, error) {
				t, err := client.Lend(c.Context(), ref, localapi.LendRequest{Host: host, ForMs: during.Milliseconds(), To: to, FromNow: fromNow, Ports: ports, Write: write})
				if err == nil && len(to) > 0 {
					a.sayGranted(t, to, fromNow)
				}
				if err == nil && len(ports) > 0 {
					a.sayPorts(t, ports, write)
				}
				a.sayOffline(t)
				a.sayRefused(t)
				return t, err
			})
		},
	}
	c.Flags().StringVar(&host, "host", "", "the paired host `NAME` instead of the default host")
	c.Flags().StringSliceVar(&to, "to", nil, "let `NAMES` at the host watch: NAME, group:NAME, agent:NAME or everyone")
	c.Flags().BoolVar(&fromNow, "from-now", false, "show them only later output")
	c.Flags().StringSliceVar(&ports, "port", nil, "let them fetch from the dev server on `PORT`, or auto for those on which its programs will listen")
	c.Flags().BoolVar(&write, "write", false, "let requests through that change something, such as POST")
	c.Flags().DurationVar(&during, "for", 0, "stop sharing after this `TIME`, such as 1h or 30m")
	return c
}

func unlendCommand(a *app) *cobra.Command {
	var host string
	var all bool
	var from, ports []string
	c := &cobra.Command{
		Use: "unlend ID…|--all [--host NAME] [--from NAME,…|--port PORT,…]", Short: "stop sharing terminals", Args: someArgs(0, -1, ""),
		Long: `stop sharing terminals. The daemon sends no more of their output and asks the hosts to
delete the output that they have. The terminals keep running. A host that is offline hears
of it when it reconnects; what it may keep until then is set by lend.park.

With --from, the sharing goes on without those that it names: NAME and agent:NAME cannot
watch any more, whoever let them; group:NAME and everyone lose what lend --to gave them.
With --port, only those ports are closed, also for responses that are under way.`,
		RunE: func(c *cobra.Command, refs []string) error {
			switch {
			case c.Flags().Changed("from") && len(from) == 0:
				return usage(c, "--from is empty: name people, or leave it out")
			case c.Flags().Changed("port") && len(ports) == 0:
				return usage(c, "--port is empty: give numbers, or auto")
			case len(ports) > 0 && len(from) > 0:
				return usage(c, "--port and --from cannot be combined: a port is open to everybody who may watch")
			case all && len(from)+len(ports) > 0:
				return usage(c, "--from and --port need terminals, not --all")
			case all && len(refs) > 0:
				return usage(c, "name terminals or pass --all, not both")
			case !all && len(refs) == 0:
				return usage(c, "missing argument: the id or name of a terminal, or --all")
			case len(ports) > 0:
				return a.each(refs, func(client *localclient.Client, ref string) (localapi.Terminal, error) {
					return client.UnlendPorts(c.Context(), ref, host, ports)
				})
			case len(from) > 0:
				return a.each(refs, func(client *localclient.Client, ref string) (localapi.Terminal, error) {
					t, err := client.UnlendFrom(c.Context(), ref, host, from)
					a.sayStill(t)
					return t, err
				})
			case !all:
				return a.each(refs, func(client *localclient.Client, ref string) (localapi.Terminal, error) {
					t, err := client.Unlend(c.Context(), ref, host)
					a.sayKept(t)
					return t, err
				})
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			ended, err := client.UnlendAll(c.Context(), host)
			for _, t := range ended.Terminals {
				fmt.Fprintln(a.stdout, display.NameOf(t), display.SharedWith(t))
			}
			a.sayKept(ended.Terminals...)
			if err == nil && len(ended.Terminals) == 0 {
				a.notice("no terminal was shared")
			}
			return err
		},
	}
	c.Flags().StringVar(&host, "host", "", "only the paired host `NAME`")
	c.Flags().StringSliceVar(&from, "from", nil, "only from `NAMES` at the host: NAME, group:NAME, agent:NAME or everyone")
	c.Flags().StringSliceVar(&ports, "port", nil, "only `PORT` of them, or auto")
	c.Flags().BoolVar(&all, "all", false, "all terminals")
	return c
}

// each calls do for every named terminal and prints with whom it is shared afterwards.
func (a *app) each(refs []string, do func(*localclient.Client, string) (localapi.Terminal, error)) error {
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
		fmt.Fprintln(a.stdout, calledAs(ref, t), display.SharedWith(t))
	}
	return errors.Join(errs...)
}

// sayOffline names the offline hosts with which a terminal is shared.
func (a *app) sayOffline(t localapi.Terminal) {
	for _, l := range t.Loans {
		if l.State == localapi.LoanOffline {
			a.notice("%s is offline; output is sent when it reconnects", display.Printable(l.Host, 70))
		}
	}
}

// sayRefused names the hosts that do not take a terminal.
func (a *app) sayRefused(t localapi.Terminal) {
	for _, l := range t.Loans {
		if l.State == localapi.LoanRefused {
			a.notice("%s does not take %s; tether status shows the reason and the next attempt", display.Printable(l.Host, 70), display.NameOf(t))
		}
	}
}

// wantsLent reports whether lend.notice is on.
func wantsLent() bool {
	d, err := dirs.Get()
	if err != nil {
		return false
	}
	settings, err := config.Load(config.Path(d), fromEnv()...)
	return err == nil && settings.Lend.Notice
}

// sayNobody tells the person why a terminal that was started without a choice of hosts is
// not shared. Who has paired with no host expects nothing else.
func (a *app) sayNobody(c *cobra.Command, client *localclient.Client, t localapi.Terminal) {
	status, err := client.Status(c.Context())
	paired := err == nil && slices.ContainsFunc(status.Hosts, func(h localapi.HostStatus) bool { return h.Default })
	switch {
	case paired && status.Root != nil && !status.Root.Lends:
		a.notice("%s is not shared, because the daemon runs as root; share it with: tether lend %s, or always with lend.as_root = true", display.NameOf(t), t.ID)
	case paired:
		a.notice("%s is not shared, as configured; share it with: tether lend %s", display.NameOf(t), t.ID)
	case len(status.Hosts) > 0:
		a.notice("%s is not shared: no default host; choose one: tether host use NAME", display.NameOf(t))
	}
}

// meansText describes the meaning of lending at a host, "" if unknown.
func meansText(h localapi.HostStatus) string {
	switch {
	case h.LentMeans == vocab.LentToEverybody:
		return "shared terminals are shown to everybody at this host"
	case h.LentMeans == vocab.LentToAudience && h.Owner == "":
		return "shared terminals are shown to those whom you name; the host says that this machine has no owner there"
	case h.LentMeans == vocab.LentToAudience:
		return "shared terminals are shown to " + display.Printable(h.Owner, 70) + ", to whom this machine belongs as the host says, and to those whom you name"
	case h.State == "online":
		return ""
	}
	return "while it is " + h.State + ", it is not known who there would see shared terminals"
}

// sayGranted describes the effect of a grant.
func (a *app) sayGranted(t localapi.Terminal, to []string, fromNow bool) {
	shown := "all retained output and what follows"
	if fromNow {
		shown = "only later output"
	}
	a.notice("%s may watch %s: %s is shown, and nobody can type", display.Names(to), display.NameOf(t), shown)
}

// sayPorts describes the effect of opening ports: what a person may not expect of reading
// alone, and on which of them nothing listens.
func (a *app) sayPorts(t localapi.Terminal, ports []string, write bool) {
	methods := "a dev server acts on GET, too, and serves its source"
	if write {
		methods = "requests of every method go through, and a dev server serves its source"
	}
	a.notice("%s; people get what it sends exactly as it is, agents with secrets masked", methods)
	for _, port := range ports {
		listens := func(l localapi.Listening) bool { return strconv.Itoa(l.Port) == port }
		if port != localapi.AutoPort && !slices.ContainsFunc(t.Listening, listens) {
			a.notice("nothing listens on port %s yet; only a program of %s can answer there", port, display.NameOf(t))
		}
	}
}

// sayStill names the hosts that do not yet know who may no longer watch.
func (a *app) sayStill(t localapi.Terminal) {
	for _, l := range t.Loans {
		if l.State == localapi.LoanOffline {
			a.notice("%s is offline; until it reconnects it shows the terminal as before", display.Printable(l.Host, 70))
		}
	}
}

// sayKept names the offline hosts that may still show a terminal whose sharing has ended,
// and until when.
func (a *app) sayKept(ts ...localapi.Terminal) {
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

// hostKeeps returns a text that says what a host may keep of terminals while this machine
// is away, or "" if it may keep nothing.
func hostKeeps(h localapi.HostStatus) string {
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
