package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/internal/version"
	"tether/platform/dirs"
	"tether/vocab"
)

// statusTimeout is how long an answer may take before the daemon counts as stuck. The
// daemon asks nobody for the answer.
const statusTimeout = 3 * time.Second

func statusCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "show the daemon, its hosts and shared terminals", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.status(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) status(ctx context.Context, asJSON bool) error {
	client, d, err := a.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	s, err := client.Status(ctx)
	switch {
	case errors.Is(err, localclient.ErrNotRunning):
		return a.statusWithout(ctx, d, err, asJSON)
	case errors.Is(err, context.DeadlineExceeded) && agent.LockHeld(context.WithoutCancel(ctx), d) != nil: // one that is about to start was waited for
		return a.statusWithout(context.WithoutCancel(ctx), d, localclient.ErrNotRunning, asJSON)
	case err != nil:
		return stuck(d, err)
	case asJSON:
		return a.printJSON(s)
	}
	a.printStatus(s)
	return nil
}

// statusWithout prints the status if no daemon runs, as err says. Terminals may still
// run.
func (a *app) statusWithout(ctx context.Context, d dirs.Dirs, err error, asJSON bool) error {
	ids, _ := agent.LeftRunning(d) // an unreadable directory is not the subject here
	if asJSON {
		s := localapi.Status{SchemaVersion: localapi.SchemaVersion, Socket: agent.SocketPath(d), Hosts: []localapi.HostStatus{}, Degraded: []localapi.Degraded{},
			Holders: localapi.Holders{Alive: len(ids)}}
		if locked := agent.LockHeld(ctx, d); locked != nil {
			s.Degraded = append(s.Degraded, localapi.Degraded{Cause: agent.LockCause, Text: locked.Error() + ": " + locked.Hint(), Since: time.Now()})
		}
		return errors.Join(a.printJSON(s), exitCode(localapi.ExitNotRunning))
	}
	if len(ids) > 0 {
		fmt.Fprintf(a.stdout, "holders    %s\n", display.LeftRunning(len(ids)))
		return &hinted{err, ""} // it was just said
	}
	return err
}

// printStatus writes everything at once.
func (a *app) printStatus(s localapi.Status) {
	w := new(bytes.Buffer)
	fmt.Fprintf(w, "daemon     running for %s, process %d, version %s\n", display.Ago(time.Since(s.Started)), s.Pid, s.Version)
	if s.Version != version.Text() {
		fmt.Fprintf(w, "           this command is version %s; to switch the daemon to it: tether daemon --replace --background\n", version.Text())
	}
	if s.Root != nil {
		fmt.Fprintf(w, "root       %s\n", display.Root(*s.Root))
	}
	for _, agent := range s.Agents {
		fmt.Fprintf(w, "agent      %s, process %d, %s\n", display.Printable(agent.Name, 64), agent.Pid, confinedText(agent.Confined))
	}
	if slices.ContainsFunc(s.Connections, func(c localapi.Connections) bool { return c.Of != "user" || c.Open == c.Max }) {
		fmt.Fprintf(w, "clients    connections: %s\n", display.Connections(s.Connections))
	}
	if s.Sandbox != nil {
		fmt.Fprintf(w, "sandbox    %s\n", display.Sandbox(*s.Sandbox))
	}
	if s.Unredacted != nil {
		fmt.Fprintf(w, "secrets    %s\n", unredactedText(*s.Unredacted))
	}
	if s.TCP != "" {
		fmt.Fprintf(w, "serves     http://%s (token required)\n", s.TCP)
	}
	fmt.Fprintf(w, "terminals  %s\n", display.Counts(s.Terminals))
	for _, p := range s.Adopted {
		fmt.Fprintf(w, "adopted    %s\n", display.Adopted(p))
	}
	fmt.Fprintf(w, "holders    %d alive\n", s.Holders.Alive)
	if s.History != nil {
		fmt.Fprintf(w, "history    %s\n", historyText(*s.History))
	}
	if s.Waiting > 0 {
		fmt.Fprintf(w, "approvals  %d pending: tether approvals\n", s.Waiting)
	}
	for _, d := range s.Degraded {
		fmt.Fprintf(w, "degraded   %s for %s: %s\n", display.Printable(d.Cause, 40), display.Ago(time.Since(d.Since)), display.Printable(d.Text, 300))
	}
	if s.Secrets != nil {
		fmt.Fprintf(w, "secrets    %s\n", storeText(*s.Secrets))
	}
	if len(s.Hosts) == 0 {
		fmt.Fprintln(w, "hosts      none; pair with one: tether pair URL")
	}
	for _, h := range s.Hosts {
		printHost(w, h)
	}
	a.stdout.Write(w.Bytes())
}

// historyText returns a text that says how much of the terminals' runs is kept.
func historyText(h localapi.HistoryStatus) string {
	if !h.On {
		return "off: nothing that terminals print is kept on disk"
	}
	text := fmt.Sprintf("on: %s, %s of at most %s, kept for %s", display.Count(h.Runs, "run"), display.Size(h.Bytes), display.Size(h.MaxBytes), h.Keep)
	if h.RoundMs > 0 {
		text += fmt.Sprintf("; the disk is slow: the last %s could be lost if the power failed", time.Duration(h.RoundMs)*time.Millisecond)
	}
	return text
}

// unredactedText returns a text that lists the agents that see text that other agents see
// as stars.
func unredactedText(u localapi.Unredacted) string {
	who := "all agents"
	switch {
	case !u.All:
		who = strings.Join(u.Names, ", ")
	case len(u.Except) > 0:
		who += " but " + strings.Join(u.Except, ", ")
	}
	return "shown without masks to " + display.Printable(who, 200) + ", as the configuration says ([agents])"
}

// storeText returns a text that says where secrets are kept.
func storeText(s localapi.SecretStore) string {
	if s.Path == "" {
		return "in the " + display.Printable(s.Store, 20)
	}
	return fmt.Sprintf("%s; secrets are in %s (0600)", display.Printable(s.Why, 200), display.Printable(s.Path, 0))
}

func printHost(w io.Writer, h localapi.HostStatus) {
	name := display.Printable(h.Name, 0)
	if h.Default {
		name += " (default)"
	}
	fmt.Fprintf(w, "host       %s at %s\n", name, display.Printable(h.URL, 0))
	state := h.State
	if h.At != "" {
		state += " at " + display.Printable(h.At, 0)
	}
	line := fmt.Sprintf("%s for %s", state, display.Ago(time.Since(h.Since)))
	if !h.DownSince.IsZero() && h.Since.Sub(h.DownSince) > time.Second {
		line += ", down for " + display.Ago(time.Since(h.DownSince))
	}
	if h.Server != "" && h.State == "online" {
		line += fmt.Sprintf(", %s, protocol %s", display.Printable(h.Server, 60), display.Printable(h.Protocol, 20))
	}
	if h.Error != "" {
		line += ": " + display.Printable(h.Error, 200)
	}
	fmt.Fprintln(w, "          ", line)
	if skew := display.Skew(time.Duration(h.ClockSkew) * time.Second); skew != "" {
		fmt.Fprintln(w, "          ", skew)
	}
	if !h.NextRetry.IsZero() && h.State != "online" {
		fmt.Fprintln(w, "           next attempt in", display.Ago(time.Until(h.NextRetry)))
	}
	if means := meansText(h); means != "" {
		fmt.Fprintln(w, "          ", means)
	}
	if backlog := backlogText(h); backlog != "" {
		fmt.Fprintln(w, "          ", backlog)
	}
	if kept := hostKeeps(h); kept != "" {
		fmt.Fprintln(w, "          ", kept)
	}
	if tools := toolsText(h.Tools); tools != "" {
		fmt.Fprintln(w, "          ", tools)
	}
	for _, l := range h.Lent {
		verb := "lends"
		if !l.There {
			verb = cmp.Or(lendVerbs[h.State], "will lend")
		}
		fmt.Fprintf(w, "           %s %s%s\n", verb, l.ID, lentTrouble(l))
		if claim := display.Claim(l.Watchers); claim != "" {
			fmt.Fprintln(w, "            ", claim)
		}
		for _, p := range l.Ports {
			fmt.Fprintln(w, "            ", display.PortInFull(p))
		}
	}
}

// toolsText returns the state of the tools that are offered to agents at a host, or "" if
// none are offered.
func toolsText(t localapi.HostTools) string {
	if !t.On {
		return ""
	}
	text := fmt.Sprintf("tools on; sessions: %d; calls: %d running, %d completed", t.Sessions, t.Running, t.Calls-t.Refused)
	if t.Refused > 0 {
		text += fmt.Sprintf(", %d refused", t.Refused)
	}
	if t.Problem != "" {
		text += ": " + display.Printable(t.Problem, 200)
	}
	return text
}

// backlogText returns a text with the amount of output that the host does not have yet,
// or "" if it has all output.
func backlogText(h localapi.HostStatus) string {
	var parts []string
	if h.Unacked > 0 {
		parts = append(parts, display.Count(int(h.Unacked), "byte")+" not yet delivered")
	}
	if h.Gaps > 0 {
		parts = append(parts, skippedText(h.GapBytes))
	}
	return strings.Join(parts, "; ")
}

// skippedText returns a text that says how much output a host will never get.
func skippedText(bytes int64) string { return display.Size(bytes) + " skipped (the link was too slow)" }

// lendVerbs are the words for what will become of a terminal that the host does not have,
// if not "will lend".
var lendVerbs = map[string]string{"refused": "cannot lend", "unsupported": "cannot lend"}

// lentTrouble returns what a person should know of a lent terminal: watchers, output that
// is not delivered or was skipped, and a problem.
func lentTrouble(l vocab.Lent) string {
	text := ""
	if l.Observers != nil && *l.Observers > 0 {
		text += fmt.Sprintf(", %d watching", *l.Observers)
	}
	if l.Unacked > 0 {
		text += ", " + display.Count(int(l.Unacked), "byte") + " not yet delivered"
	}
	if l.Lost > 0 {
		text += ", " + skippedText(l.Lost)
	}
	if l.Problem != "" {
		text += ": " + display.Printable(l.Problem, 200)
	}
	return text
}
