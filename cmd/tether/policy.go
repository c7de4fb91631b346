package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/cmd/tether/internal/display"
)

func policyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "explain what agents may run", SuggestionsMinimumDistance: 2,
		Long: `explain what agents may run.

Rules are built in, or set by you in [policy] of the configuration file. Files in a
project's directory cannot change them. docs/POLICY.md lists all rules.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(policyCheckCommand(a))
	return c
}

// policyCheck has the flags of the command.
type policyCheck struct {
	as, cwd, door string
	line, asJSON  bool
}

func policyCheckCommand(a *app) *cobra.Command {
	f := policyCheck{}
	c := &cobra.Command{
		Use: "check [flags] -- CMD…", Short: "show whether the policy allows a command, and why", Args: someArgs(1, -1, "a command, after --"),
		Long: `show whether the policy allows a command, and why. Nothing runs, and no daemon is
needed.

The exit status is 0 if the command is allowed, 1 if you would be asked, and 6 if it
is denied.`,
		RunE: func(c *cobra.Command, args []string) error { return a.checkPolicy(c, f, args) },
	}
	c.Flags().SetInterspersed(false) // flags after the command are the command's
	c.Flags().StringVar(&f.as, "as", "agent", "the agent's `NAME`, or user")
	c.Flags().StringVar(&f.cwd, "cwd", "", "the working `DIR` of the command; default: the current directory")
	c.Flags().StringVar(&f.door, "door", policy.DoorMCP, "the interface through which the command would come: mcp, acp, cli, ws or ahp")
	c.Flags().BoolVar(&f.line, "line", false, "CMD is a shell command line")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// checked is the output of policy check --json.
type checked struct {
	SchemaVersion int `json:"schema_version"`
	policy.Decision
	Commands []string `json:"commands"`
	Config   string   `json:"config"`
}

func (a *app) checkPolicy(c *cobra.Command, f policyCheck, args []string) error {
	path, settings, err := loadConfig()
	if err != nil {
		return err
	}
	engine, err := policy.New(policy.Options{Config: settings.Policy})
	if err != nil {
		return err
	}
	dir, err := directory(f.cwd)
	if err != nil {
		return err
	}
	r := policy.Request{Door: f.door, Actor: term.Agent(f.as), Cwd: dir, Argv: args, Background: true}
	switch f.door {
	case policy.DoorMCP, policy.DoorACP, policy.DoorCLI, policy.DoorWS, policy.DoorAHP:
	default:
		return usage(c, "--door must be mcp, acp, cli, ws or ahp, not %q", f.door)
	}
	if f.as == "user" {
		r.Actor = term.User
	}
	if f.line {
		r.Line, r.Argv = strings.Join(args, " "), nil
	}
	read := policy.Read(r)
	out := checked{SchemaVersion: localapi.SchemaVersion, Decision: engine.Check(r), Commands: []string{}, Config: path}
	for _, x := range read.Commands {
		out.Commands = append(out.Commands, x.String())
	}
	status := map[policy.Effect]error{policy.Ask: exitCode(localapi.ExitFailure), policy.Deny: exitCode(localapi.ExitDenied)}[out.Effect]
	if f.asJSON {
		return errors.Join(a.printJSON(out), status)
	}
	fmt.Fprintf(a.stdout, "%s by %s: %s\n", out.Effect, out.Rule, display.Printable(out.Reason, 0))
	if len(out.Commands) > 1 || len(read.Outer) > 0 {
		for _, x := range out.Commands {
			fmt.Fprintln(a.stdout, "  would run:", display.Printable(x, 200))
		}
	}
	return status
}
