package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/internal/qr"
	"tether/platform/tty"
)

func shareCommand(a *app) *cobra.Command {
	var r localapi.ShareRequest
	var here hereFlags
	during := time.Hour
	c := &cobra.Command{
		Use: "share ID [--host NAME | --here] [--port PORT] [--for TIME] [--once]", Short: "make a link with which a guest watches one terminal", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `make a link with which a guest watches one terminal in a browser, read-only and without a
login. Whoever has the link sees the retained and the new output of this terminal, and
nothing else, until the time is up or tether unshare ends it. A terminal that is not
shared with the host is shown to the guests alone. The link is printed once and kept nowhere;
at a terminal it is also shown as a QR code, for phones.

With --port the guest sees what a program of this terminal serves at that port, and nothing
of the terminal. A port that is not shared with the host is open to the guests alone, for
reading, until the time is up.

With --here no host needs to be paired: this command starts a private host on loopback
with this one terminal, makes it reachable, and says who can read what is shown. It runs
in the foreground; everything ends with it, with the time, or with tether unshare.
Ways (--via), all by programs that you have:
  tailscale          an https address in your tailnet
  tailscale:funnel   the same, for everybody
  cloudflared        a quick tunnel; its operator, Cloudflare, can read what is shown
  ssh:HOST[:PORT]    a port on HOST's loopback, by ssh -R; with --public-url for the
                     https address of something there that ends TLS (port 9188)
  none               this machine only`,
		RunE: func(c *cobra.Command, args []string) error {
			if during < time.Millisecond {
				return usage(c, "--for %s must be more than 0, such as 1h", during)
			}
			if c.Flags().Changed("port") && (r.Port < loans.LeastPort || r.Port > math.MaxUint16) {
				return usage(c, "--port is %d, and must be %d to %d", r.Port, loans.LeastPort, math.MaxUint16)
			}
			if r.Port != 0 && here.on {
				return usage(c, "--port and --here cannot be combined: a private host has no names for ports")
			}
			r.ForMs = during.Milliseconds()
			ways, err := here.ways(c, r.Host)
			if err != nil {
				return err
			}
			if here.on {
				return a.shareHere(c.Context(), args[0], r, ways, here.agent)
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			s, err := client.Share(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			sees := "all retained and new output"
			if s.Port != 0 {
				sees = fmt.Sprintf("port %d", s.Port)
			}
			a.notice("%s sees %s of %s at %s until %s; end it with: tether unshare %s",
				admitted(s), sees, display.Printable(s.Name, 80), display.Printable(s.Host, 80), s.Until.Local().Format("2006-01-02 15:04"), s.ID)
			if s.Loopback {
				a.notice("this link works on this machine only, since the host is at a loopback address")
			}
			fmt.Fprintln(a.stdout, s.Link)
			a.showCode(s)
			return nil
		},
	}
	c.Flags().StringVar(&r.Host, "host", "", "the paired host `NAME` instead of the default host")
	c.Flags().IntVar(&r.Port, "port", 0, "a link to this `PORT` of the terminal's programs, and to nothing else")
	here.add(c)
	c.Flags().DurationVar(&during, "for", time.Hour, "end the link after this `TIME`, at most 720h")
	c.Flags().BoolVar(&r.Once, "once", false, "let only the first browser in that opens the link")
	return c
}

// showCode shows a link as a QR code to a person at a terminal, if the code fits and the
// link works on other machines than this one.
func (a *app) showCode(s localapi.NewShare) {
	if s.Loopback || !tty.Is(a.stdoutFile) {
		return
	}
	code, err := qr.Encode(s.Link)
	if err != nil {
		a.notice("no QR code is shown: the link is too long for one")
		return
	}
	cols, rows := code.Cells()
	if w, h, ok := tty.Size(a.stdoutFile); ok && (w < cols || h <= rows) {
		a.notice("no QR code is shown: it takes %d columns and %d lines, and this terminal has %d and %d", cols, rows+1, w, h)
		return
	}
	fmt.Fprint(a.stdout, code.Text(display.Colours(a.stdoutFile)))
}

func sharesCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "shares", Short: "list the links of guests", Args: someArgs(0, 0, ""),
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			all, err := client.Shares(c.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(localapi.Shares{SchemaVersion: localapi.SchemaVersion, Shares: all})
			case len(all) == 0:
				fmt.Fprintln(a.stdout, "no links")
				return nil
			}
			w := a.table("ID\tTERMINAL\tHOST\tUNTIL\tONCE")
			for _, s := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\n", s.ID, shared(s), display.Printable(s.Host, 80), s.Until.Local().Format("2006-01-02 15:04"), s.Once)
			}
			return w.Flush()
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// shared names what guests see.
func shared(s localapi.Share) string {
	name := display.Printable(s.Name, 80)
	if s.Port != 0 {
		name += fmt.Sprintf(", port %d", s.Port)
	}
	return name
}

func unshareCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unshare ID|TERMINAL", Short: "end a guest's link, or all of a terminal", Args: someArgs(1, 1, "the id of a link, or the id or name of a terminal"),
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			all, err := client.Shares(c.Context())
			if err != nil {
				return err
			}
			ended := false
			for _, s := range all {
				if s.ID != args[0] && s.Terminal != args[0] && s.Name != args[0] {
					continue
				}
				if err := client.Unshare(c.Context(), s.ID); err != nil {
					return err
				}
				ended = true
				fmt.Fprintf(a.stdout, "ended the link %s of %s at %s\n", s.ID, display.Printable(s.Name, 80), display.Printable(s.Host, 80))
			}
			if !ended {
				return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("there is no link %.80q, nor one of a terminal with this name", args[0]), Hint: "tether shares lists them"}
			}
			return nil
		}),
	}
}
