package main

import (
	"github.com/spf13/cobra"

	"tether/agent/local"
)

func mcpCommand(a *app) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use: "mcp", Short: "give an agent terminals through MCP, over standard input and output", Args: noArgs,
		Long: `give an agent terminals through MCP, over standard input and output.

An MCP client starts it. The daemon does the work: the agent's terminals live on
when the client ends, and are still the agent's when it comes back under the same
name. Agents of different names do not see each other's terminals. For example:

  {"mcpServers": {"tether": {"command": "tether", "args": ["mcp", "--as", "claude"]}}}`,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			agent := client.As(as)
			pipe := &mcpPipe{open: agent.MCP, in: a.stdin, out: a.stdout, patience: awayPatience, notice: a.notice}
			defer whileConnected(c.Context(), client, silence(a.notice), pipe.awaits)()
			return pipe.run(c.Context())
		},
	}
	c.Flags().StringVar(&as, "as", local.DefaultAgent, "the `NAME` under which the agent owns terminals")
	return c
}
