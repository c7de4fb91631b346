package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tether/agent"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestTailPrintsLastLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for text, want := range map[string]string{
		"":                      "",
		"a\n":                   "a\n",
		"a\nb\nc":               "a\nb\nc",
		"a\nb\nc\n":             "a\nb\nc\n",
		"a\nb\nc\nd\n":          "b\nc\nd\n",
		"a\nb\nc\nd":            "b\nc\nd",
		"a\nb\nc\nd\ne\nf\ng\n": "e\nf\ng\n",
	} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		var b bytes.Buffer
		if err := tail(t.Context(), &b, name, 3, false); err != nil || b.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, b.String(), err, want)
		}
	}
	if err := tail(t.Context(), &bytes.Buffer{}, name+".none", 3, false); err != nil {
		t.Errorf("no log yet: %v", err)
	}
}

// The last lines of a long log are found from its end on, in any place of the pieces that
// are read, and cost no memory for each line.
func TestTailOfALongLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	var all []string
	var text strings.Builder
	for i := range 40_000 {
		line := fmt.Sprintln(i, strings.Repeat("x", i%97))
		all = append(all, line)
		text.WriteString(line)
	}
	must.Do(t, os.WriteFile(name, []byte(text.String()), 0o600))
	for _, n := range []int{1, 2, 600, 601, 602, 603, 604, 605, 5000, 39_999, 40_000, 40_001, maxLines, math.MaxInt} {
		var b bytes.Buffer
		b.Grow(text.Len() + 1<<20)
		var err error
		allocs := testing.AllocsPerRun(1, func() { b.Reset(); err = tail(t.Context(), &b, name, n, false) })
		if want := strings.Join(all[max(0, len(all)-n):], ""); err != nil || b.String() != want {
			t.Errorf("the last %d lines: %d bytes, %v, want %d", n, b.Len(), err, len(want))
		}
		if allocs > 100 {
			t.Errorf("the last %d lines take %v allocations", n, allocs)
		}
	}
}

// No number on the command line makes a command fail otherwise than with a message.
func TestNumbersOfTheCommandLine(t *testing.T) {
	home := newHome(t)
	for _, file := range []string{agent.LogPath(dirsOf(home)), agent.AuditPath(dirsOf(home))} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("{}\n{}\n"), 0o600)))
	}
	cast := filepath.Join(home, "x.cast")
	must.Do(t, os.WriteFile(cast, []byte(`{"version":2,"width":80,"height":24}`+"\n"+`[0.5,"o","x"]`+"\n"), 0o600))
	numbers := map[string][]string{
		"int":      {"9223372036854775807", "-9223372036854775808", "4000000000", "-1", "0"},
		"float64":  {"NaN", "Inf", "-Inf", "1e-300", "1e300", "0"},
		"duration": {"2562047h47m16s", "-2562047h", "1ns", "0s"},
	}
	numbers["int64"], numbers["past"] = numbers["int"], numbers["duration"]
	tried := 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			each(sub)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			for _, n := range numbers[f.Value.Type()] {
				args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+n)
				switch c.Name() {
				case "play":
					args = append(args, cast)
				case "approve", "lend", "read", "record", "share", "wait", "problems":
					args = append(args, "none")
				}
				tried++
				out, err := exec.Command("tether", args...).CombinedOutput()
				if status, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || strings.Contains(string(out), "goroutine ") || ok && status.ExitCode() < 0 {
					t.Errorf("tether %q: %v: %.2000s", args, err, out)
				}
			}
		})
	}
	each(newRoot(&app{}))
	if tried < 40 {
		t.Errorf("only %d were tried", tried)
	}
}

// A log that is followed may not be there yet, and begins anew when it is full.
func TestTailFollows(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	ctx, stop := context.WithCancel(t.Context())
	out, ended := &testkit.Output{}, make(chan error, 1)
	go func() { ended <- tail(ctx, out, name, 5, true) }()
	want := ""
	for i := range 3 {
		line := fmt.Sprintln("line", i)
		want += line
		if i == 2 {
			must.Do(t, os.Rename(name, name+".1"))
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(line)
			err = errors.Join(err, f.Close())
		}
		must.Do(t, err)
		testkit.Eventually(t, patience, "the new line", func() bool { return out.String() == want })
	}
	stop()
	check.OK(t, <-ended)
}

// The program is installed under the name that stays when its version changes.
func TestStableProgram(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "tether")
	if err := os.Symlink(self, link); err != nil {
		t.Skip("no links here:", err)
	}
	t.Setenv("PATH", dir)
	if got, err := stableProgram(); err != nil || got != link {
		t.Errorf("got %s, %v, want %s", got, err, link)
	}
	must.Do(t, errors.Join(os.Remove(link), os.WriteFile(link, []byte("#!/bin/sh\n"), 0o700)))
	if got, err := stableProgram(); err != nil || got != self || strings.HasPrefix(got, dir) {
		t.Errorf("another program was taken: %s, %v", got, err)
	}
}
