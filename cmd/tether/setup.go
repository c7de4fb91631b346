package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tether/cmd/tether/internal/display"
	"tether/internal/progentry"
	"tether/platform/dirs"
	"tether/platform/tty"
)

func setupCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "setup", Short: "configure other programs on this machine to use tether", Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(setupAgentsCommand(a), setupTerminalCommand(a))
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
			return a.confirmEdits(c, edits, then, yes)
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
	name, path    string // name is the program's
	before, after []byte // if before is nil, there is no file; if after is nil, the file is removed
	read          func() ([]byte, error)
	write         func(before, after []byte) error
}

// ofFile returns an edit of a file that is not read yet. mode is that of a new file.
func ofFile(name, path string, mode os.FileMode) fileEdit {
	return fileEdit{name: name, path: path, read: func() ([]byte, error) { return readIfThere(path) },
		write: func(_, after []byte) error { return replaceFile(path, after, mode) }}
}

// readIfThere returns the content of a file, or nothing if the file does not exist.
func readIfThere(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return text, err
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
		e := ofFile(k.name, k.file(), 0o600)
		change := func(text []byte) ([]byte, error) { return k.edited(text, program, undo) }
		if changes, err := a.planEdit(&e, undo, change); err != nil {
			a.notice("%s: skipped %s: %v", k.name, e.path, err)
		} else if changes {
			edits = append(edits, e)
		}
	}
	return edits, nil
}

// planEdit reads the file of e, completes e with what change makes of it, and shows that.
// It reports whether anything changes.
func (a *app) planEdit(e *fileEdit, undo bool, change func([]byte) ([]byte, error)) (changes bool, err error) {
	if e.before, err = e.read(); err == nil {
		e.after, err = change(e.before)
	}
	switch {
	case err != nil:
		return false, err
	case bytes.Equal(e.before, e.after) && undo:
		fmt.Fprintf(a.stdout, "%s: no entry for tether in %s\n", e.name, e.path)
	case bytes.Equal(e.before, e.after):
		fmt.Fprintf(a.stdout, "%s: already configured (%s)\n", e.name, e.path)
	default:
		fmt.Fprintf(a.stdout, "%s: %s\n%s", e.name, e.path, changedLines(e.before, e.after))
		return true, nil
	}
	return false, nil
}

// edited returns the agent's file with tether's server added, or removed. It returns nil
// if nothing else is left.
func (k knownAgent) edited(text []byte, program string, undo bool) ([]byte, error) {
	if undo {
		out, err := k.format.Remove(text, "tether", program, "mcp")
		if err == nil && len(text) > 0 && !bytes.Equal(out, text) && progentry.Empty(out) {
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
func mcpEntry(as string) (progentry.Entry, error) {
	program, err := stableProgram()
	if err != nil {
		return progentry.Entry{}, err
	}
	e := progentry.Entry{Command: program, Args: []string{"mcp", "--as", as}}
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
func (a *app) confirmEdits(c *cobra.Command, edits []fileEdit, then string, yes bool) error {
	if !yes {
		if !tty.Is(a.stdin) {
			return &usageError{message: strings.TrimPrefix(c.CommandPath(), "tether ") + ": nothing was written", hint: "give --yes to write these changes"}
		}
		if ok, err := a.ask(c.Context(), "Write these changes?", false); err != nil || !ok {
			fmt.Fprintln(a.stdout, "nothing was written")
			return err
		}
	}
	var failed []error
	for _, e := range edits {
		if err := e.apply(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.name, err))
			continue
		}
		fmt.Fprintf(a.stdout, "%s: written\n", e.name)
	}
	if len(failed) < len(edits) {
		fmt.Fprintln(a.stdout, then)
	}
	return errors.Join(failed...)
}

// apply writes the file. It fails if the file has changed since it was read, because
// other programs may write their files at any time.
func (e fileEdit) apply() error {
	now, err := e.read()
	if err != nil {
		return err
	}
	if !bytes.Equal(now, e.before) {
		return fmt.Errorf("%s was changed by another program; run the command again", e.path)
	}
	return e.write(e.before, e.after)
}

// replaceFile replaces the file atomically and keeps its permissions; a new one has this
// mode. It follows a symbolic link. It removes the file if text is nil.
func replaceFile(path string, text []byte, mode os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if text == nil {
		return os.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tether-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
