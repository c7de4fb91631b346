package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/platform/dirs"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/platform/tty"
)

// newConfig is the content of a new configuration file.
const newConfig = `# tether's configuration. tether config keys lists every key and its meaning,
# tether config view shows the values in effect. The daemon reads this file at start.
#
# [[terminal]]              # starts with the daemon
# name = "web"
# command = ["npm", "run", "dev"]
# cwd = "~/src/site"
# restart = "on-failure"
`

func configEditCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "edit", Short: "open the file in your editor, then check it", Args: noArgs,
		Long: `open the configuration file in your editor, VISUAL or else EDITOR, and check it
after the editor exits. Errors are reported by line; you can then reopen the file or
leave it. A running daemon is not affected: it reads the file at start.`,
		Example: "  tether config edit\n  VISUAL='code --wait' tether config edit",
		RunE:    func(c *cobra.Command, _ []string) error { return a.editConfig(c.Context()) }}
}

func (a *app) editConfig(ctx context.Context) error {
	d, err := dirs.Get()
	if err != nil {
		return err
	}
	path := config.Path(d)
	if err := makeConfig(path); err != nil {
		return err
	}
	for {
		if err := a.edit(ctx, path); err != nil {
			return err
		}
		_, _, err := loadConfig()
		if err == nil {
			a.notice("%s is valid. To apply it: tether up for declared terminals, tether daemon --replace --background for everything else", path)
			return nil
		}
		if !tty.Is(a.stdin) {
			return err
		}
		fmt.Fprintf(a.stderr, "tether: %v\n", err)
		again, err := a.ask(ctx, "reopen the file?", true)
		if err != nil || !again {
			return exitCode(localapi.ExitUsage)
		}
	}
}

// makeConfig creates the file if it is missing.
func makeConfig(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := secret.Dir(filepath.Dir(path)); err != nil {
		return err
	}
	return secret.WriteFile(path, []byte(newConfig))
}

// edit runs the person's editor. The variables that name it may hold a command line with
// arguments, as for git.
func (a *app) edit(ctx context.Context, path string) error {
	own := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if own == "" && !tty.Is(a.stdin) {
		return &usageError{"config edit needs an interactive terminal", "the file is " + path + "; edit it directly"}
	}
	editor := cmp.Or(own, shell.Editor)
	words := strings.Fields(editor)
	if len(words) == 0 {
		return &usageError{"config edit: VISUAL contains no command", "try: VISUAL=nano tether config edit"}
	}
	c := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	c.Stdin, c.Stdout, c.Stderr = a.stdin, a.stdoutFile, a.stderr
	if err := c.Run(); err != nil {
		return &hinted{fmt.Errorf("%s: %w", words[0], err), "choose another editor with VISUAL or EDITOR; the file is " + path}
	}
	return nil
}
