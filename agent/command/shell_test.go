//go:build linux || darwin

package command_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/agent/command"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Real shells run random lines whose commands note that they ran. Every command that ran
// must have been read: all rules depend on this property.
func TestShellsRunNothingUnread(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh", "ksh", "mksh", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			argv := []string{path, "-c"}
			if shell == "busybox" {
				argv = []string{path, "sh", "-c"}
			}
			w := newShellWorld(t)
			ran := 0
			for seed := range testkit.Rounds(t, 60, 3000) {
				line := randomLine(rand.New(rand.NewPCG(uint64(seed), 1)), 3)
				r := command.Line(line)
				for _, name := range w.run(t, append(argv, line)) {
					ran++
					if !r.Has(command.Unparsed) && !r.Has(command.Dynamic) && !slices.ContainsFunc(r.Commands, func(c command.Command) bool { return c.Name() == name }) {
						t.Errorf("seed %d: %s has run %s unread:\n%s\nread was %q", seed, shell, name, line, said(r))
					}
				}
			}
			if ran < 30 {
				t.Errorf("only %d commands were run: this tests nothing", ran)
			}
		})
	}
}

// shellWorld is a PATH with commands that note their name, and some real ones that run
// others.
type shellWorld struct {
	bin, dir, logs string
	runs           int
}

var noting = []string{"alpha", "beta", "gamma", "delta", "rm", "eval2", "git"}

func newShellWorld(t *testing.T) *shellWorld {
	t.Helper()
	w := &shellWorld{bin: t.TempDir(), dir: t.TempDir(), logs: t.TempDir()}
	for _, name := range noting {
		script := fmt.Sprintf("#!/bin/sh\necho %s >> \"$NOTES\"\necho %s\n", name, name)
		must.Do(t, os.WriteFile(filepath.Join(w.bin, name), []byte(script), 0o700))
	}
	for _, real := range []string{"env", "nohup", "nice", "timeout", "xargs", "sh", "cat", "true", "false", "find"} {
		if path, err := exec.LookPath(real); err == nil {
			must.Do(t, os.Symlink(path, filepath.Join(w.bin, real)))
		}
	}
	return w
}

// run returns the names of the commands that were run.
func (w *shellWorld) run(t *testing.T, argv []string) []string {
	t.Helper()
	w.runs++ // each has separate notes: processes that an earlier one has left running may still write
	notes := filepath.Join(w.logs, fmt.Sprint(w.runs))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = w.dir, []string{"PATH=" + w.bin, "HOME=" + w.dir, "NOTES=" + notes}
	c.WaitDelay = time.Second
	_ = c.Run() // many lines fail; commands that ran before count
	data, err := os.ReadFile(notes)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// randomLine makes a line of at most so many levels.
func randomLine(r *rand.Rand, depth int) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	simple := func() string {
		name := pick(noting...)
		switch r.IntN(8) {
		case 0:
			name = string(name[0]) + "''" + name[1:]
		case 1:
			name = `\` + name
		case 2:
			name = `"` + name[:2] + `"` + name[2:]
		case 3:
			name = fmt.Sprintf(`$'\x%02x'%s`, name[0], name[1:])
		}
		return name + pick("", " a", ` "b c"`, " 'd'", " # rm", " $X", ` "$(true)"`, " a#rm", " '#' x", " \\\n e", " ``#rm")
	}
	if depth == 0 {
		return simple()
	}
	sub := func() string { return randomLine(r, depth-1) }
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	switch r.IntN(22) {
	case 0:
		return sub() + pick("; ", " && ", " || ", "\n", " & ") + sub()
	case 1:
		return sub() + " | " + sub()
	case 2:
		return "( " + sub() + "\n)"
	case 3:
		return "{ " + sub() + "\n}"
	case 4:
		return "if true; then " + sub() + "\nelse " + sub() + "\nfi"
	case 5:
		return "for x in 1; do " + sub() + "\ndone"
	case 6:
		return "case a in a) " + sub() + "\n;; *) " + sub() + "\n;; esac"
	case 7:
		return "f() { " + sub() + "\n}; f"
	case 8:
		return simple() + " \"$(" + sub() + "\n)\""
	case 9:
		return "X=$(" + sub() + "\n)"
	case 10:
		return "sh -c " + quoted(sub())
	case 11:
		return "eval " + quoted(sub())
	case 12:
		return "env A=1 " + simple()
	case 13:
		return "timeout 5 nice -n 1 " + simple()
	case 14:
		return "cat <<E\n$(" + sub() + "\n)\nE\n"
	case 15:
		return "sh <<'E'\n" + sub() + "\nE\n"
	case 16:
		return "true | xargs " + pick("", "-n 1 ") + simple()
	case 17:
		return "while false; do true; done; " + sub()
	case 18:
		return "! " + sub()
	case 19:
		return "find . -prune -exec " + pick(noting...) + " {} \\;"
	case 20:
		return "trap " + quoted(sub()) + " EXIT"
	}
	return simple() + pick(" > /dev/null", " 2>&1", " < /dev/null") + "; " + sub()
}
