package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

// readerVerb is the command that makes this program the reader of one pane. People cannot
// use it, since it needs what adopt.ReaderArgs returns.
const readerVerb = "adopt-reader"

func adoptCommand(a *app) *cobra.Command {
	var asJSON, watch bool
	var r localapi.AdoptRequest
	c := &cobra.Command{
		Use: "adopt [PANE]", Short: "make a pane of tmux a terminal, or list those that there are", Args: someArgs(0, 1, "a pane, as tether adopt lists them"),
		Long: `make a pane of tmux, or of another program of docs/ADOPT.md, a terminal: it can be read,
waited for, shared and searched like one that tether has started. Nothing is typed into
the pane, its size stays, and it is shared with nobody. Agents on this machine read it as
any terminal of yours, unless --private is given. tether unadopt ends the adoption; the
pane runs on.

Without a PANE, the panes are listed. With --watch, the rules of the configuration that
adopt panes by themselves are listed.`,
		Example: "  tether adopt\n  tether adopt tmux:%3\n  tether adopt tmux:%3 --name web --private\n  tether adopt --watch",
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			for _, name := range []string{"name", "private", "type"} {
				if len(args) == 0 && c.Flags().Changed(name) {
					return usage(c, "--%s needs a pane: tether adopt lists them", name)
				}
			}
			switch {
			case watch && len(args) > 0:
				return usage(c, "name a pane or pass --watch, not both")
			case asJSON && len(args) > 0:
				return usage(c, "--json is for the list of panes; tether ls --json has the terminal")
			case len(args) > 0:
				r.Pane = args[0]
				return a.adopt(c.Context(), client, r)
			}
			done := a.progress(c.Context(), "looking for panes")
			all, err := client.Panes(c.Context())
			done()
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(all)
			case watch:
				return a.printAdoptRules(all.Rules)
			}
			return a.printPanes(all)
		}),
	}
	c.Flags().StringVar(&r.Name, "name", "", "the terminal's `NAME`")
	c.Flags().BoolVar(&r.Private, "private", false, "hide it from all hosts and agents")
	c.Flags().BoolVar(&r.Type, "type", false, "let yourself type into the pane from tether")
	c.Flags().BoolVar(&watch, "watch", false, "list the rules that adopt panes by themselves")
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	c.ValidArgsFunction = a.completing(paneNames)
	return c
}

// adopt adopts a pane, and says who can read it now.
func (a *app) adopt(ctx context.Context, client *localclient.Client, r localapi.AdoptRequest) error {
	done := a.progress(ctx, "looking at the pane")
	t, err := client.Adopt(ctx, r)
	done()
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, t.ID, display.Printable(t.Name, 0))
	if !t.Adopted.Exact {
		a.notice("it is a repeated picture: what is printed between two pictures can be missing")
	}
	if t.Private {
		a.notice("only you can read it; tether unadopt %s ends that, and the pane runs on", display.NameOf(t))
		return nil
	}
	a.notice("agents on this machine can read it, as any terminal of yours (--private prevents that); it is shared with no host: tether lend %[1]s. tether unadopt %[1]s ends the adoption, and the pane runs on", display.NameOf(t))
	return nil
}

// printPanes lists panes; those of terminals last.
func (a *app) printPanes(all localapi.PaneList) error {
	for _, t := range all.Trouble {
		a.notice("%s", display.Printable(t, 0))
	}
	if len(all.Panes) == 0 {
		a.notice("no panes were found; docs/ADOPT.md lists the programs whose panes can be adopted")
		return nil
	}
	w := a.table("PANE\tPROGRAM\tDIRECTORY\tPORT\tREADS\tSTATE")
	for _, p := range all.Panes {
		reads, state := "every byte", "-"
		if !p.Exact {
			reads = "repeated picture"
		}
		switch {
		case p.Terminal != "":
			state = "adopted as " + display.Printable(p.Name, 40)
		case p.Why != "":
			reads, state = "-", display.Printable(p.Why, 0)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", display.Printable(p.Pane, 0), display.Printable(p.Command, display.MaxCommand), orDash(display.Printable(p.Directory, 0)), orDash(portsText(p.Listening)), reads, state)
	}
	return w.Flush()
}

// portsText returns the numbers of ports, each once.
func portsText(all []localapi.Listening) string {
	var ports []string
	for _, l := range all {
		if n := strconv.Itoa(l.Port); !slices.Contains(ports, n) {
			ports = append(ports, n)
		}
	}
	return strings.Join(ports, ",")
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// printAdoptRules lists the rules that adopt panes.
func (a *app) printAdoptRules(rules []localapi.AdoptRule) error {
	if len(rules) == 0 {
		a.notice(`no rule adopts panes by itself; tether config edit adds one: [[adopt]] tmux = true, match = "npm|vite|next|cargo watch"`)
		return nil
	}
	w := a.table("PROGRAM\tMATCH")
	for _, r := range rules {
		fmt.Fprintf(w, "%s\t%s\n", r.Program, display.Printable(r.Match, 0))
	}
	return w.Flush()
}

func unadoptCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unadopt ID…", Short: "end the adoption of panes, which run on", Args: someArgs(1, -1, "the id or name of a terminal"),
		Example: "  tether unadopt web",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, refs []string) error {
			var errs []error // the first decides the exit status
			for _, ref := range refs {
				t, err := client.Unadopt(c.Context(), ref)
				if err != nil {
					errs = append(errs, about(ref, err))
					continue
				}
				fmt.Fprintln(a.stdout, calledAs(ref, t), display.Ended(t))
			}
			return errors.Join(errs...)
		}),
	}
}

// paneNames returns the panes that can be adopted, each with its program.
func paneNames(ctx context.Context, client *localclient.Client) (all []string, err error) {
	l, err := client.Panes(ctx)
	for _, p := range l.Panes {
		if p.Why == "" && p.Terminal == "" {
			all = append(all, p.Pane+"\t"+display.Printable(p.Command, 40))
		}
	}
	return all, err
}
