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
	"tether/agent/local"
	"tether/platform/dirs"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/platform/tty"
)

// newConfig is what a file begins with that is opened for the first time.
const newConfig = `# tether's configuration. tether config view shows every key with its value,
# docs/CONFIG.md says what they mean. The daemon reads it when it starts.
#
# [[terminal]]              # comes up with the daemon
# name = "web"
# command = ["npm", "run", "dev"]
# cwd = "~/src/site"
# restart = "on-failure"
`

func configEditCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "edit", Short: "open it in your editor, and check it after", Args: noArgs,
		Long: `open the configuration file in your editor, VISUAL or else EDITOR, and check it
when the editor has ended. What is wrong is told by line, and the file can be opened
again or left as it is: a daemon that runs has read it already.`,
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
		again, err := a.ask(ctx, "open it again?", true)
		if err != nil || !again {
			return exitCode(local.ExitUsage)
		}
	}
}

// makeConfig writes a first file.
func makeConfig(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := secret.Dir(filepath.Dir(path)); err != nil {
		return err
	}
	return secret.WriteFile(path, []byte(newConfig))
}

// edit runs the person's editor. Its variable is a command line, as git and others take it.
func (a *app) edit(ctx context.Context, path string) error {
	own := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if own == "" && !tty.Is(a.stdin) {
		return &usageError{"config edit needs an interactive terminal", "the file is " + path + "; edit it directly"}
	}
	editor := cmp.Or(own, shell.Editor)
	words := strings.Fields(editor)
	if len(words) == 0 {
		return &usageError{"config edit: VISUAL names no editor", "VISUAL=nano tether config edit"}
	}
	c := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	c.Stdin, c.Stdout, c.Stderr = a.stdin, a.stdout, a.stderr
	if err := c.Run(); err != nil {
		return &hinted{fmt.Errorf("%s: %w", words[0], err), "VISUAL or EDITOR names another one; the file is " + path}
	}
	return nil
}
