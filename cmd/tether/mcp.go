package main

import (
	"context"
	"errors"
	"io"

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
			session, err := client.As(as).MCP(c.Context())
			if err != nil {
				return err
			}
			return a.pipe(c.Context(), session)
		},
	}
	c.Flags().StringVar(&as, "as", local.DefaultAgent, "the `name` under which the agent owns terminals")
	return c
}

// pipe passes lines on between the client and the daemon until either is done.
// What the daemon says last is passed on whole.
func (a *app) pipe(ctx context.Context, session *local.MCPStream) error {
	stop := context.AfterFunc(ctx, func() { session.Close() })
	defer stop()
	sent := make(chan error, 1) // 1: its end may come when nobody waits any more
	go func() {
		_, err := io.Copy(session, a.stdin)
		sent <- err // first: the daemon may end the session as soon as it hears
		if err == nil {
			_ = session.CloseWrite() // where the session is gone, there is nothing to say
		}
	}()
	_, err := io.Copy(a.stdout, session)
	session.Close()
	select {
	case <-sent: // the client is done
		return nil
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("the daemon ended the session")
	}
	return &hinted{err, "start the client anew; its terminals are kept as long as the daemon runs"}
}
