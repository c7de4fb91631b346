package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"tether/host"
	"tether/host/page"
)

// terminalsCommand lists the terminals lent to a running host, with what its
// administrators may know.
func terminalsCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var u hostURL
	var asJSON bool
	c := &cobra.Command{
		Use: "terminals", Short: "list the terminals at a running host: names, owners, sizes, who may watch, and open ports",
		Long: `Lists the terminals that machines have lent to a running host, and its own shells, with their owners, their sizes, who may watch
them, and their ports that are open to those, with the number of requests so far. What they print is not shown: that is for their audience. The token must have the role admin.`,
		Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			var got struct{ Terminals []host.Lent }
			if err := u.list(c.Context(), "lent", stdin, &got); err != nil {
				return err
			}
			if asJSON {
				return printJSON(stdout, map[string]any{"schema_version": 1, "terminals": append([]host.Lent{}, got.Terminals...)})
			}
			w := newTable(stdout, "ID\tNAME\tOWNER\tSTATE\tSIZE\tBYTES\tMAY WATCH\tWATCHING\tPORTS")
			for _, t := range got.Terminals {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%dx%d\t%d\t%s\t%d\t%s\n", oneLine(t.ID), oneLine(t.Machine+"/"+t.Name), cmp.Or(oneLine(t.Owner), "-"), oneLine(t.State), t.Cols, t.Rows, t.Bytes,
					cmp.Or(oneLine(strings.Join(t.May, ", ")), "-"), t.Watching, openPorts(t.Ports))
			}
			return w.Flush()
		},
	}
	u.flagsIn(c.PersistentFlags())
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.AddCommand(&cobra.Command{
		Use: "withdraw ID NAME", Short: "end somebody's grant for a terminal, for as long as it is lent", Args: exactly(2, "the id of a terminal and a name, such as bob, group:web or agent:ci"),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := u.remove(c.Context(), "lent/"+url.PathEscape(args[0])+"/"+url.PathEscape(args[1]), stdin)
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("%.60s is not granted to %.80q; tether-host terminals lists who may watch", args[0], args[1])
			}
			fmt.Fprintf(stdout, "%s may not watch %s any more\n", args[1], args[0])
			return nil
		},
	})
	return c
}

// openPorts describes a terminal's open ports: 3000 (5), 8080 write (0).
func openPorts(all []page.OpenPort) string {
	var said []string
	for _, p := range all {
		how := ""
		if p.Write {
			how = " write"
		}
		said = append(said, fmt.Sprintf("%d%s (%d)", p.Port, how, p.Fetched))
	}
	return cmp.Or(strings.Join(said, ", "), "-")
}
