package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

func portsCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ports [ID]", Short: "list the TCP ports on which your programs, or a terminal's, listen", Args: someArgs(0, 1, "the id or name of a terminal"),
		Long: `list the TCP ports on which your programs listen: in which terminal, checkout and
directory, also those outside tether; with an ID, those of that terminal and their URLs
for a browser on this machine. tether ls shows the URLs, too. On macOS and Windows a
program that was started from a terminal but has left it, such as a daemon, counts as
outside.`,
		Example: "  tether ports\n  tether ports web\n  tether ports --json web | jq -r '.ports[0].url'",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			if len(args) == 0 {
				return a.allPorts(c.Context(), client, asJSON)
			}
			done := a.progress(c.Context(), "looking for ports")
			p, err := client.Ports(c.Context(), args[0])
			done()
			if err != nil {
				return about(args[0], err)
			}
			if asJSON {
				return a.printJSON(p)
			}
			if len(p.Ports) == 0 {
				a.notice("no program in this terminal listens on a TCP port")
				return nil
			}
			w := a.table("PORT\tADDRESS\tPROCESS\tURL")
			for _, l := range p.Ports {
				fmt.Fprintf(w, "%d\t%s\t%d\t%s\n", l.Port, l.Address, l.Pid, cmp.Or(l.URL, "-"))
			}
			return w.Flush()
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// allPorts prints what this user's programs listen on.
func (a *app) allPorts(ctx context.Context, client *localclient.Client, asJSON bool) error {
	return a.printPorts(ctx, client.AllPorts, asJSON, "no program listens on a TCP port", "PORT\tADDRESS\tTERMINAL\tCHECKOUT\tPROGRAM\tDIRECTORY", func(p localapi.UserPort) []string {
		in := "(outside tether)"
		if p.Terminal != "" {
			in = display.Printable(p.Name, 40) + " " + p.Terminal
		}
		return []string{in, checkoutText(p), programOf(p), orDash(display.Printable(p.Directory, 0))}
	})
}

// unseenPorts prints what this user's programs listen on that are in no terminal.
func (a *app) unseenPorts(ctx context.Context, client *localclient.Client, asJSON bool) error {
	const columns = "PORT\tADDRESS\tSINCE\tCHECKOUT\tPROGRAM\tDIRECTORY\tTO SEE ITS OUTPUT"
	return a.printPorts(ctx, client.UnseenPorts, asJSON, "no program outside of terminals listens on a TCP port", columns, func(p localapi.UserPort) []string {
		since := "-"
		if !p.Since.IsZero() {
			since = display.Ago(time.Since(p.Since))
		}
		return []string{since, checkoutText(p), programOf(p), orDash(display.Printable(p.Directory, 0)), howToSee(p)}
	})
}

// printPorts prints a list of ports, each with its cells behind port and address.
func (a *app) printPorts(ctx context.Context, ask func(context.Context) (localapi.Ports, error), asJSON bool, none, columns string, cells func(localapi.UserPort) []string) error {
	done := a.progress(ctx, "looking for ports")
	all, err := ask(ctx)
	done()
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.printJSON(all)
	case len(all.Ports) == 0:
		a.notice("%s", none)
		return nil
	}
	w := a.table(columns)
	for _, p := range all.Ports {
		fmt.Fprintf(w, "%d\t%s", p.Port, p.Address)
		for _, cell := range cells(p) {
			fmt.Fprintf(w, "\t%s", cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func checkoutText(p localapi.UserPort) string {
	if p.Checkout == nil {
		return "-"
	}
	return display.Printable(p.Checkout.Label(), 60)
}

// howToSee says how a program gets into a terminal.
func howToSee(p localapi.UserPort) string {
	switch {
	case p.Adopt != "":
		return "tether adopt " + display.ShellLine([]string{p.Adopt})
	case len(p.Restart) == 0:
		return "-"
	case p.Directory != "":
		return display.Printable("end it, then tether run --cwd "+display.ShellLine([]string{p.Directory})+" -- "+display.ShellLine(p.Restart), 0)
	}
	return display.Printable("end it, then tether run -- "+display.ShellLine(p.Restart), 0)
}

// programOf returns a program's name and, for an interpreter, what it runs, with the
// process number if that is told.
func programOf(p localapi.UserPort) string {
	name := "unknown"
	if len(p.Command) > 0 {
		words := append([]string{p.Command[0][strings.LastIndexAny(p.Command[0], `/\`)+1:]}, p.Command[1:]...)
		name = display.Printable(display.ShellLine(words), 50)
	}
	if p.Pid == 0 {
		return name
	}
	return fmt.Sprintf("%s (%d)", name, p.Pid)
}
