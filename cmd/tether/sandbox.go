package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/platform/dirs"
	"tether/platform/proc"
)

func sandboxCommand(a *app) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use: "sandbox [flags] -- AGENT ARGS…", Short: "run an agent in its configured sandbox",
		Long: `run an agent in its configured sandbox, in this terminal.

The sandbox grants the agent and its child processes this directory and the paths
in the configuration. They can use tether only as that agent, so commands that
tether starts for them are in the sandbox, too. Child processes end with the agent.
Example configuration:

  [[policy.principals]]
  name = "agent:claude"
  sandbox = "auto"
  roots = ["~/src"]
  writable = ["~/.claude", "~/.claude.json"]

The exit status is the agent's.`,
		Args: someArgs(1, -1, "an agent's command, after --"),
		RunE: func(c *cobra.Command, argv []string) error {
			as = cmp.Or(as, agentName(argv[0]))
			return a.sandbox(c, as, argv)
		},
	}
	c.Flags().SetInterspersed(false) // flags after the command are the agent's
	c.Flags().StringVar(&as, "as", "", "the agent's `NAME`, which selects the sandbox; default: the name of the command")
	return c
}

// sandboxGrace is how long an agent may take to end when this command has to end.
const sandboxGrace = 5 * time.Second

func (a *app) sandbox(c *cobra.Command, as string, argv []string) error {
	client, err := a.ensured(c)
	if err != nil {
		return err
	}
	argv, err = behindSandbox(c.Context(), client.As(as), argv)
	if err != nil {
		return err
	}
	// This process is recorded as the agent, too, before any program below it runs.
	if err := recordAgent(os.Getpid(), as, true); err != nil {
		return err
	}
	agent := exec.CommandContext(c.Context(), argv[0], argv[1:]...)
	agent.Env = append(agentEnviron(environment(os.Environ())), proc.AgentTag(as))
	agent.Stdin, agent.Stdout, agent.Stderr = os.Stdin, os.Stdout, os.Stderr
	agent.Cancel, agent.WaitDelay = func() error { return agent.Process.Signal(syscall.SIGHUP) }, sandboxGrace
	return programStatus(agent.Run())
}

// behindSandbox returns the command that runs argv, in this directory, in the sandbox of
// the client's agent.
func behindSandbox(ctx context.Context, client *localclient.Client, argv []string) ([]string, error) {
	dir, err := directory("")
	if err != nil {
		return nil, err
	}
	r, err := client.Sandbox(ctx, localapi.SandboxRequest{Command: argv, Cwd: dir})
	return r.Command, err
}

// recordAgent records that a process and all its descendants are the agent.
func recordAgent(pid int, name string, confined bool) error {
	p, err := proc.Lookup(pid)
	if err != nil {
		return err
	}
	d, err := dirs.Get()
	if err != nil {
		return err
	}
	return local.OpenAgents(d.State).Record(local.AgentRecord{ID: p.ID, Principal: name, Confined: confined})
}

func confinedText(confined bool) string {
	if confined {
		return "in a sandbox"
	}
	return "unconfined: the agent itself runs without a sandbox"
}
