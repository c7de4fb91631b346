package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

// pairedList is the output of tether host ls --json: the paired hosts.
type pairedList struct {
	SchemaVersion int                   `json:"schema_version"`
	Hosts         []localapi.HostStatus `json:"hosts"`
}

func hostCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "host", Aliases: []string{"hosts"}, Short: "manage paired hosts", SuggestionsMinimumDistance: 2,
		Long: `list, choose, rename and remove paired hosts, and offer tools to their agents.

You can pair several hosts. tether run and tether shell share terminals with the
default host, unless you pass --host or --private.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(pairedListCommand(a), hostUseCommand(a), hostRetryCommand(a), hostRenameCommand(a), hostToolsCommand(a), hostRemoveCommand(a))
	return c
}

func pairedListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "list paired hosts", Args: noArgs,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			s, err := client.Status(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(pairedList{localapi.SchemaVersion, s.Hosts})
			}
			return a.printHosts(s.Hosts)
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printHosts(all []localapi.HostStatus) error {
	if len(all) == 0 {
		a.notice("no host is paired; pair with one: tether pair URL")
		return nil
	}
	w := a.table("NAME\tSTATE\tSHARED\tTOOLS\tURL")
	for _, h := range all {
		name := display.Printable(h.Name, 0)
		if h.Default {
			name += " (default)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, h.State, display.LentCount(h), onOff(h.Tools.On), display.Printable(h.URL, 0))
	}
	return w.Flush()
}

func hostUseCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "set the default host, with which terminals are shared", Args: someArgs(1, 1, "the host's name"),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.changeHost(c, args[0], localapi.HostChange{Default: true})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is the default host\n", display.Printable(h.Name, 0))
			return nil
		},
	}
}

func hostRetryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "retry NAME", Short: "reconnect to a host now", Args: someArgs(1, 1, "the host's name"),
		Long: `reconnect to a host now.

The daemon reconnects to hosts automatically; it waits several minutes before it
retries a host that refused this machine. tether status shows the state of each host.`,
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.changeHost(c, args[0], localapi.HostChange{Retry: true})
			if err != nil {
				return err
			}
			text := "%s is connecting; see tether host ls\n"
			if h.State == "online" {
				text = "%s is online\n"
			}
			fmt.Fprintf(a.stdout, text, display.Printable(h.Name, 0))
			return nil
		},
	}
}

func hostRenameCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rename NAME NEW", Short: "rename a host", Args: someArgs(2, 2, "the host's name and the new one"),
		Long: `rename a host.

Terminals are shared with a host by name, so a host with shared terminals cannot be
renamed.`,
		RunE: func(c *cobra.Command, args []string) error {
			if args[1] == "" {
				return usage(c, "the new name is empty")
			}
			h, err := a.changeHost(c, args[0], localapi.HostChange{Name: args[1]})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s is now %s\n", display.Printable(args[0], 0), display.Printable(h.Name, 0))
			return nil
		},
	}
}

func hostToolsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "tools NAME on|off", Short: "allow or forbid agents at a host to use this machine's tools", Args: someArgs(2, 2, "the host's name, and on or off"),
		Long: `allow or forbid agents at a host to use this machine's tools.

With on, agents in the host's sessions can list, read and wait for the terminals shared
with the host. They can also start a program in a terminal of their own, which is
shared with the host immediately, and end it. Every program that none of your rules
matches needs your approval (tether approvals). The default is off; pairing the host
again resets it to off.`,
		RunE: func(c *cobra.Command, args []string) error {
			on := args[1] == "on"
			if !on && args[1] != "off" {
				return usage(c, "%q must be on or off", args[1])
			}
			h, err := a.changeHost(c, args[0], localapi.HostChange{Tools: &on})
			if err != nil {
				return err
			}
			text := "agents at %s may not use this machine's tools\n"
			if on {
				text = "agents at %s may use this machine's tools; tether approvals -w shows their requests\n"
			}
			fmt.Fprintf(a.stdout, text, display.Printable(h.Name, 0))
			return nil
		},
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (a *app) changeHost(c *cobra.Command, name string, change localapi.HostChange) (localapi.HostStatus, error) {
	client, err := a.ensured(c)
	if err != nil {
		return localapi.HostStatus{}, err
	}
	return client.ChangeHost(c.Context(), name, change)
}

func hostRemoveCommand(a *app) *cobra.Command {
	c := unpairCommand(a)
	c.Use, c.Short = "rm NAME", "the same as tether unpair"
	return c
}
