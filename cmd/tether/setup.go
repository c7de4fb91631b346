package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tether/cmd/tether/internal/display"
	"tether/internal/mcpentry"
	"tether/platform/dirs"
	"tether/platform/tty"
)

func setupCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "setup", Short: "configure other programs on this machine to use tether", Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(setupAgentsCommand(a))
	return c
}

func setupAgentsCommand(a *app) *cobra.Command {
	var undo, yes bool
	c := &cobra.Command{
		Use: "agents [AGENT…]", Short: "add tether's MCP server to installed agents",
		Long: `add tether's MCP server to the configuration files of all installed agents, or of the
named ones: claude, codex, gemini, opencode, qwen, copilot, cline, kilo, auggie, amp,
qoder, droid, cursor, vscode, vscode-remote, zed, kimi.

The command shows each change before it writes anything. Comments, order and all other
content of the files stay the same; a file that cannot be edited this way is skipped
and reported. --undo removes the entries. Restart the agents afterwards.

Below a known agent, every program counts as that agent's. Two ways remain in which an
agent counts as you: it types into a pane of your tmux or screen, or into a terminal of
your editor. tether sandbox closes both.`,
		Example: "  tether setup agents\n  tether setup agents claude codex --yes\n  tether setup agents --undo",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return agentIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			agents, err := chosenAgents(c, args)
			if err != nil {
				return err
			}
			edits, err := a.planEdits(agents, undo)
			if err != nil {
				return err
			}
			if len(agents) > 0 && !undo {
				fmt.Fprint(a.stdout, agentsThatCountAsYou)
			}
			if len(edits) == 0 {
				return nil
			}
			then := "restart the agents; they see what you start with: tether run -- CMD"
			if undo {
				then = "restart the agents"
			}
			return a.confirmEdits(c.Context(), edits, then, yes)
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "remove the entries")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "write without asking")
	return c
}

// agentsThatCountAsYou says what docs/SECURITY.md documents as open.
const agentsThatCountAsYou = `An agent that types into a pane of your tmux or screen, or into a terminal of your
editor, counts as you: tether cannot tell the difference. tether sandbox closes both.
`

func agentIDs() (ids []string) {
	all, _ := knownAgents() // without a home directory there are none
	for _, k := range all {
		ids = append(ids, k.id)
	}
	return ids
}

// chosenAgents returns the named agents, or all installed ones if none is named.
func chosenAgents(c *cobra.Command, names []string) ([]knownAgent, error) {
	all, err := knownAgents()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		home, _ := os.UserHomeDir() // knownAgents has found it without an error
		return slices.DeleteFunc(all, func(k knownAgent) bool { return !k.installed(home) }), nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(k knownAgent) bool { return k.id == name }) {
			return nil, usage(c, "unknown agent %q; known agents: %s", name, strings.Join(agentIDs(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(k knownAgent) bool { return !slices.Contains(names, k.id) }), nil
}

// fileEdit is a change of one file.
type fileEdit struct {
	agent         knownAgent
	path          string
	before, after []byte // if before is nil, there is no file; if after is nil, the file is removed
}

// planEdits lists the changes, and the files that stay unchanged and why.
func (a *app) planEdits(agents []knownAgent, undo bool) ([]fileEdit, error) {
	if len(agents) == 0 {
		fmt.Fprintln(a.stdout, "no known agent is installed; name one to configure it anyway: "+strings.Join(agentIDs(), ", "))
		return nil, nil
	}
	program, err := stableProgram()
	if err != nil {
		return nil, err
	}
	var edits []fileEdit
	for _, k := range agents {
		e := fileEdit{agent: k, path: k.file()}
		if e.before, err = k.read(); err == nil {
			e.after, err = k.edited(e.before, program, undo)
		}
		switch {
		case err != nil:
			a.notice("%s: skipped %s: %v", k.name, e.path, err)
		case bytes.Equal(e.before, e.after) && undo:
			fmt.Fprintf(a.stdout, "%s: no entry for tether in %s\n", k.name, e.path)
		case bytes.Equal(e.before, e.after):
			fmt.Fprintf(a.stdout, "%s: already configured (%s)\n", k.name, e.path)
		default:
			edits = append(edits, e)
			fmt.Fprintf(a.stdout, "%s: %s\n%s", k.name, e.path, changedLines(e.before, e.after))
		}
	}
	return edits, nil
}

// edited returns the agent's file with tether's server added, or removed. It returns nil
// if nothing else is left.
func (k knownAgent) edited(text []byte, program string, undo bool) ([]byte, error) {
	if undo {
		out, err := k.format.Remove(text, "tether", program, "mcp")
		if err == nil && len(text) > 0 && !bytes.Equal(out, text) && mcpentry.Empty(out) {
			return nil, nil
		}
		return out, err
	}
	if has, err := k.format.Has(text, program, "mcp"); has || err != nil {
		return text, err
	}
	e, err := mcpEntry(k.id)
	if err != nil {
		return nil, err
	}
	return k.format.Add(text, "tether", e)
}

// mcpEntry returns how tether's MCP server is started for an agent.
func mcpEntry(as string) (mcpentry.Entry, error) {
	program, err := stableProgram()
	if err != nil {
		return mcpentry.Entry{}, err
	}
	e := mcpentry.Entry{Command: program, Args: []string{"mcp", "--as", as}}
	for _, name := range []string{dirs.HomeVar, allowRootVar} { // agents may start servers without most of their environment
		if value := os.Getenv(name); value != "" {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = value
		}
	}
	return e, nil
}

// changedLines returns the difference of two texts: the removed and the added lines, with
// one line around them.
func changedLines(before, after []byte) string {
	old, now := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	var b strings.Builder
	put := func(mark string, lines []string) {
		for _, line := range lines {
			if line != "" {
				b.WriteString("  " + mark + " " + display.Printable(strings.TrimRight(line, "\r\n"), 0) + "\n")
			}
		}
	}
	put(" ", old[max(0, head-1):head])
	put("-", old[head:len(old)-tail])
	put("+", now[head:len(now)-tail])
	put(" ", old[len(old)-tail:min(len(old), len(old)-tail+1)])
	return b.String()
}

// confirmEdits asks the person, unless they have said yes already, writes the files, and
// says what to do then.
func (a *app) confirmEdits(ctx context.Context, edits []fileEdit, then string, yes bool) error {
	if !yes {
		if !tty.Is(a.stdin) {
			return &usageError{message: "setup agents: nothing was written", hint: "give --yes to write these changes"}
		}
		if ok, err := a.ask(ctx, "Write these changes?", false); err != nil || !ok {
			fmt.Fprintln(a.stdout, "nothing was written")
			return err
		}
	}
	var failed []error
	for _, e := range edits {
		if err := e.write(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.agent.name, err))
			continue
		}
		fmt.Fprintf(a.stdout, "%s: written\n", e.agent.name)
	}
	if len(failed) < len(edits) {
		fmt.Fprintln(a.stdout, then)
	}
	return errors.Join(failed...)
}

// write replaces the file atomically and keeps its permissions. It follows a symbolic
// link. It fails if the file has changed since it was read, because agents may write
// their files at any time.
func (e fileEdit) write() error {
	now, err := e.agent.read()
	if err != nil {
		return err
	}
	if !bytes.Equal(now, e.before) {
		return fmt.Errorf("%s was changed by another program; run the command again", e.path)
	}
	path := e.path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if e.after == nil {
		return os.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tether-*")
	if err != nil {
		return err
	}
	_, err = f.Write(e.after)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
