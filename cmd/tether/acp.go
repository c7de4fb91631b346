package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/acp"
)

func acpCommand(a *app) *cobra.Command {
	var o acpOptions
	var mcp bool
	c := &cobra.Command{
		Use: "acp [flags] -- AGENT ARGS…", Short: "proxy an ACP agent and run its commands in tether's terminals",
		Long: `proxy an ACP agent: relay the Agent Client Protocol between an editor and an agent,
and run the agent's commands in tether's terminals on this machine.

Put it before the agent's command in the editor's settings:

  "command": "tether", "args": ["acp", "--", "kimi", "acp"]

The proxy offers the agent terminals of the daemon: tether ls lists them, you can
attach to them, and they are shared with the default host. The proxy passes
everything else through unchanged. The exit status is the agent's.`,
		Args: someArgs(1, -1, "an agent's command, after --"),
		RunE: func(c *cobra.Command, argv []string) error {
			o.argv, o.serve = argv, acp.ServerKnown
			switch {
			case c.Flags().Changed("mcp") && mcp:
				o.serve = acp.ServerAlways
			case c.Flags().Changed("mcp"):
				o.serve = acp.ServerNever
			}
			return a.acp(c, o)
		},
	}
	c.Flags().SetInterspersed(false) // flags after the command are the agent's
	c.Flags().StringVar(&o.mode, "terminal", string(acp.Take), "which terminals the agent uses, as `MODE`: take (tether's), auto (the editor's if it offers terminals) or editor (always the editor's)")
	c.Flags().StringVar(&o.as, "as", "", "the agent's `NAME`, which selects its policy rules and limits; default: the name of its command")
	c.Flags().BoolVar(&mcp, "mcp", false, "add tether's MCP server to the agent's sessions; default: only for agents that run commands themselves; --mcp=false never adds it")
	c.Flags().BoolVar(&o.sandbox, "sandbox", false, "also run the agent itself in its configured sandbox")
	c.Flags().BoolVar(&o.ansi, "ansi", false, "keep colours and other escape sequences in the output that the agent reads")
	return c
}

type acpOptions struct {
	mode, as string
	ansi     bool
	sandbox  bool
	serve    acp.Server
	argv     []string
}

func (a *app) acp(c *cobra.Command, o acpOptions) error {
	mode := acp.Mode(o.mode)
	switch mode {
	case acp.Take, acp.Auto, acp.Editor:
	default:
		return usage(c, "--terminal %q must be take, auto or editor", o.mode)
	}
	if mode == acp.Editor && o.serve == acp.ServerAlways {
		return usage(c, "--mcp needs tether's terminals: omit --terminal=editor")
	}
	o.as = cmp.Or(o.as, agentName(o.argv[0]))
	options := acp.Options{Mode: mode, ANSI: o.ansi, Serve: o.serve, Notice: func(text string) { a.notice("acp: %s", text) }}
	if mode != acp.Editor || o.sandbox {
		client, d, err := a.client()
		if err != nil {
			return err
		}
		start := func(ctx context.Context) error { return a.ensure(ctx, client, d) }
		if err := start(c.Context()); err != nil {
			return err
		}
		client = client.Patient(silence(a.notice))
		agent := client.As(o.as)
		if _, err := agent.Status(c.Context()); err != nil { // before the agent's first command needs it
			return err
		}
		if o.sandbox {
			if o.argv, err = behindSandbox(c.Context(), agent, o.argv); err != nil {
				return err
			}
		}
		if mode != acp.Editor {
			if options.MCP, err = mcpServer(o.as); err != nil {
				return err
			}
			options.Terminals = &agentTerminals{name: o.as, client: agent, person: client, ensure: start, notice: a.notice}
		}
	}
	return a.serveAgent(c.Context(), options, o.as, o.argv, o.sandbox)
}

// mcpServer is tether's MCP server for an agent, as ACP describes servers.
func mcpServer(as string) (*acp.MCPServer, error) {
	e, err := mcpEntry(as)
	if err != nil {
		return nil, err
	}
	s := &acp.MCPServer{Name: "tether", Command: e.Command, Args: e.Args, Env: []acp.EnvVar{}}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		s.Env = append(s.Env, acp.EnvVar{Name: name, Value: e.Env[name]})
	}
	return s, nil
}

// agentName derives a principal's name from a program's. npx is a poor name, but better
// than none.
func agentName(program string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("._-", r):
			return r
		}
		return '-'
	}, filepath.Base(program))
	return fmt.Sprintf("%.64s", name)
}
