package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"tether/agent/localclient"
)

func portsCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ports ID", Short: "list the TCP ports on which a terminal's programs listen", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `list the TCP ports on which a terminal's programs listen, and their URLs for a
browser on this machine. tether ls shows the URLs, too. On macOS and Windows the
list lacks programs that were started from the terminal but have left it, such as
daemons.`,
		Example: "  tether ports web\n  tether ports --json web | jq -r '.ports[0].url'",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
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
