package pty_test

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

var printed = regexp.MustCompile(`<([0-9a-f]*)>`)

// decoded is the text that helpers printed in hexadecimal, so that no console changes it.
func decoded(t *testing.T, output string) []string {
	t.Helper()
	var all []string
	for _, m := range printed.FindAllStringSubmatch(output, -1) {
		b := must.Get(hex.DecodeString(m[1]))(t)
		all = append(all, string(b))
	}
	return all
}

// A child that prints its arguments prints exactly the given ones.
func TestArgumentsArrive(t *testing.T) {
	testkit.Leaks(t)
	lists := [][]string{nil, {""}, awkward}
	alphabet := []rune(`ab"\\ '%&^|é🙂` + "\t")
	for range 20 {
		var args []string
		for range 1 + rand.IntN(6) {
			var b strings.Builder
			for range rand.IntN(12) {
				b.WriteRune(alphabet[rand.IntN(len(alphabet))])
			}
			args = append(args, b.String())
		}
		lists = append(lists, args)
	}
	for _, args := range lists {
		p := start(t, "argv", args...)
		if diff := cmp.Diff(args, decoded(t, p.rest())); diff != "" {
			t.Errorf("(-given +arrived)\n%s", diff)
		}
		p.Close()
	}
}

// The same through a batch file, which cmd.exe runs: nothing in an argument becomes a
// command, a variable or another argument.
func TestArgumentsArriveThroughABatchFile(t *testing.T) {
	testkit.Leaks(t)
	dir := filepath.Join(t.TempDir(), "a b")
	must.Do(t, os.Mkdir(dir, 0o700))
	batch := filepath.Join(dir, "pass on.bat")
	must.Do(t, os.WriteFile(batch, []byte("@\""+os.Args[0]+"\" %*\r\n"), 0o600))
	var args []string
	for _, a := range awkward {
		if !strings.Contains(a, "\n") {
			args = append(args, a)
		}
	}
	c := helper("line") // Go's own reading of a line differs from the C runtime's where marks are doubled
	c.Path, c.Args = batch, append([]string{"pass on"}, args...)
	c.Env = append(c.Env, "x=EXPANDED")
	p := run(t, c)
	lines := decoded(t, p.rest())
	if len(lines) != 1 {
		t.Fatalf("printed %q", lines)
	}
	if diff := cmp.Diff(args, splitLine(lines[0])[1:]); diff != "" {
		t.Errorf("(-given +arrived)\n%s\n%s", diff, lines[0])
	}
}

func TestLineOfTheInterpreter(t *testing.T) {
	testkit.Leaks(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"cmd.exe", "/d", "/c", `echo one& echo "two three"`}, "one\n\"two three\"\n"},
		{[]string{"cmd", "/c", "echo", "a b"}, "\"a b\"\n"},
		{[]string{"cmd", "/d", "/s", "/c", "exit 3"}, ""},
	} {
		p := run(t, pty.Command{Path: "cmd.exe", Args: c.args, Env: os.Environ(), Size: wide})
		if got := p.rest(); got != c.want {
			t.Errorf("%q printed %q, want %q", c.args, got, c.want)
		}
	}
}

func TestEnvironmentIsOnlyTheGivenOne(t *testing.T) {
	testkit.Leaks(t)
	c := helper("env")
	c.Env = []string{"B=2", helperVar + "=env", "a=bär", "A=über", "EMPTY="}
	p := run(t, c)
	got := decoded(t, p.rest())
	root := "SystemRoot=" + os.Getenv("SystemRoot")
	for _, want := range []string{"A=über", "B=2", "EMPTY=", root} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for _, e := range got {
		name, _, _ := strings.Cut(strings.ToUpper(e), "=")
		known := []string{"A", "B", "EMPTY", "SYSTEMROOT", helperVar, "SYSTEMDRIVE", "PROCESSOR_ARCHITECTURE"} // the last two are Wine's
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "WINE") {
			t.Errorf("%q was not given", e)
		}
	}
}

func TestDirAndRelativeProgram(t *testing.T) {
	testkit.Leaks(t)
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "here.bat"), []byte("@cd\r\n"), 0o600))
	for _, path := range []string{`.\here`, "./here.bat", filepath.Join(dir, "here")} {
		p := run(t, pty.Command{Path: path, Dir: dir, Env: os.Environ(), Size: wide})
		if got := strings.TrimSpace(p.rest()); !strings.EqualFold(got, dir) {
			t.Errorf("%s ran in %q, want %q", path, got, dir)
		}
	}
}

func TestStartReportsFaults(t *testing.T) {
	testkit.Leaks(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	garbage, script, batch := write("garbage.exe", "MZ and no more"), write("script.ps1", "exit"), write("x.bat", "@exit")
	path := "PATH=" + dir
	for _, c := range []struct {
		name    string
		command pty.Command
		what    string
		is      error
		says    string
	}{
		{"no program", pty.Command{}, "program", nil, "no program given"},
		{"missing", pty.Command{Path: `C:\no\such`}, "program", fs.ErrNotExist, `program "C:\\no\\such"`},
		{"not on PATH", pty.Command{Path: "nosuch", Env: []string{path}}, "program", fs.ErrNotExist, `program "nosuch"`},
		{"no PATH", pty.Command{Path: "cmd"}, "program", fs.ErrNotExist, `program "cmd"`},
		{"relative PATH", pty.Command{Path: "x", Env: []string{`Path=;.;bin`}}, "program", fs.ErrNotExist, `program "x"`},
		{"a directory", pty.Command{Path: dir}, "program", nil, "is a directory"},
		{"not a program", pty.Command{Path: garbage}, "program", nil, "not a Windows program"},
		{"a script", pty.Command{Path: script}, "program", nil, "give the program that runs this file"},
		{"NUL", pty.Command{Path: `C:\windows\system32\cmd.exe`, Args: []string{"x", "a\x00b"}}, "program", nil, "NUL"},
		{"line break for a batch file", pty.Command{Path: batch, Args: []string{"x", "a\nb"}}, "program", nil, "line break"},
		{"missing directory", pty.Command{Path: batch, Dir: `C:\no\such`}, "directory", fs.ErrNotExist, `directory "C:\\no\\such"`},
		{"not a directory", pty.Command{Path: batch, Dir: batch}, "directory", nil, "directory"},
	} {
		p, err := pty.Start(c.command)
		if err == nil {
			t.Errorf("%s: started", c.name)
			p.Close()
			continue
		}
		var se *pty.StartError
		if !errors.As(err, &se) || se.What != c.what || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%#v); want %s, %v, with %q", c.name, err, err, c.what, c.is, c.says)
		}
	}
}
