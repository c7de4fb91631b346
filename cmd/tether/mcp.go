package main

import (
	"os"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/platform/proc"
)

func mcpCommand(a *app) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use: "mcp", Short: "serve terminals to an agent over MCP (stdio)", Args: noArgs,
		Long: `serve terminals to an agent over MCP, on standard input and output.

An MCP client starts this command. The terminals run in the daemon: they keep
running when the client ends, and the agent has them again when it returns under
the same name. Agents with different names do not see each other's terminals.
Example configuration of a client:

  {"mcpServers": {"tether": {"command": "tether", "args": ["mcp", "--as", "claude"]}}}`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			agent := client.As(as)
			pipe := &mcpPipe{open: agent.MCP, in: a.stdin, out: a.stdoutFile, timeout: localclient.AwayTimeout, notice: a.notice, orphan: orphaned()}
			defer client.Watch(c.Context(), pipe.awaits, silence(a.notice))()
			return pipe.run(c.Context())
		}),
	}
	c.Flags().StringVar(&as, "as", localapi.DefaultAgent, "the `NAME` of the agent, which owns the terminals")
	return c
}

// orphaned returns a function that reports whether the process that started this one has
// ended. It is nil if that process is not known.
func orphaned() func() bool {
	parent, err := proc.Lookup(os.Getppid())
	if err != nil {
		return nil
	}
	return func() bool {
		now, err := proc.Lookup(parent.Pid)
		return err != nil || now.ID != parent.ID || now.Zombie
	}
}
