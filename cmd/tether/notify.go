package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
)

// notifyForms are the forms that a service may take.
var notifyForms = []string{"json", "ntfy", "slack", "discord", "mattermost"}

func notifyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "notify", Short: "manage the URLs of notifications, and test them", SuggestionsMinimumDistance: 2,
		Long: `manage the URLs of notifications, and test them.

Rules in the configuration, [[notify]], say what you are told of terminals, and where:
on the desktop, or at a URL, by its name. docs/CONFIG.md has the keys.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(notifyAddCommand(a), notifyListCommand(a), notifyTestCommand(a), notifyRemoveCommand(a))
	return c
}

func notifyAddCommand(a *app) *cobra.Command {
	var form string
	c := &cobra.Command{Use: "add NAME", Short: "keep a URL, given on standard input, under a name", Args: someArgs(1, 1, "a name"),
		Long: `keep a URL, given on standard input, under a name. It replaces the URL of that name.

The URL is kept as tokens are: in the keyring, or in a file that only you can read.
Nothing shows it again. It begins with https://, or with http:// for this machine, and
may name a private address. Redirects are not followed. A message is tried for 24 h.

--form is the form of the service's messages: json (an object with title, text, rule,
time and count), ntfy, slack, discord or mattermost. It is guessed from the URL for
ntfy.sh, Slack and Discord, and is json otherwise.`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			url, err := a.readURL(c.Context())
			if err != nil {
				return err
			}
			added, err := client.AddReceiver(c.Context(), args[0], localapi.ReceiverRequest{URL: url, Form: form})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "kept the URL of %s in the %s; form %s\n", display.Printable(added.Name, 0), added.Store, added.Form)
			return nil
		})}
	c.Flags().StringVar(&form, "form", "", "the `FORM` of messages: "+strings.Join(notifyForms, ", "))
	_ = c.RegisterFlagCompletionFunc("form", cobra.FixedCompletions(notifyForms, cobra.ShellCompDirectiveNoFileComp)) // cannot fail: the flag exists
	return c
}

// readURL reads a URL from standard input, without showing it.
func (a *app) readURL(ctx context.Context) (string, error) {
	if !tty.Is(a.stdin) {
		return readSecret(a.stdin, "standard input")
	}
	fmt.Fprint(a.stderr, "URL: ")
	text, err := tty.ReadSecret(ctx, a.stdin)
	fmt.Fprintln(a.stderr)
	return strings.TrimSpace(text), err
}

func notifyListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "list the rules in force and the names of URLs", Args: noArgs,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			all, err := client.Notifications(c.Context(), false)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(all)
			}
			return a.printNotifications(all)
		})}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printNotifications(all localapi.Notifications) error {
	if len(all.Rules) == 0 {
		a.notice("no rules: [[notify]] in the configuration makes one, and the daemon reads it at its next start")
	}
	if len(all.Receivers) == 0 {
		a.notice("no URLs; add one with: tether notify add NAME")
	}
	if len(all.Receivers) > 0 {
		w := a.table("URL\tFORM\tKEPT IN\tRULES")
		for _, r := range all.Receivers {
			var rules []string
			for _, n := range all.Rules {
				if n.To == r.Name {
					rules = append(rules, n.Name)
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", display.Printable(r.Name, 0), r.Form, r.Store, cmp.Or(strings.Join(rules, ", "), "-"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(all.Rules) == 0 {
		return nil
	}
	w := a.table("RULE\tON\tTERMINALS\tTO")
	for _, n := range all.Rules {
		to := display.Printable(n.To, 0)
		if n.Problem != "" {
			to += " (" + display.Printable(n.Problem, 200) + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", display.Printable(n.Name, 0), strings.Join(n.On, ", "), cmp.Or(display.Printable(strings.Join(n.Terminals, ", "), 60), "all"), to)
	}
	return w.Flush()
}

func notifyTestCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "test NAME", Short: "send a message to a URL, by its name, or to the desktop", Args: someArgs(1, 1, "a name, or desktop"),
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			if err := client.TestReceiver(c.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, display.Printable(args[0], 0), "took the message")
			return nil
		})}
}

func notifyRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "remove NAME", Aliases: []string{"rm"}, Short: "forget a URL", Args: someArgs(1, 1, "a name"),
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			if err := client.RemoveReceiver(c.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "forgot", display.Printable(args[0], 0))
			return nil
		})}
}

// receiverNames returns the names of URLs, and of the desktop.
func receiverNames(ctx context.Context, client *localclient.Client) (all []string, err error) {
	n, err := client.Notifications(ctx, false)
	for _, r := range n.Receivers {
		all = append(all, r.Name+"\t"+r.Form)
	}
	return slices.Concat(all, []string{"desktop\tnotifications of this desktop"}), err
}
