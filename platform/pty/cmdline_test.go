package pty_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// splitLine splits a command line as the C runtime of Windows does since 2008 ("Parsing C
// command-line arguments", learn.microsoft.com). The result is a child's argument list.
func splitLine(line string) []string {
	end := strings.IndexByte(line[1:], '"') + 1 // the program's name, always in quotation marks here
	args, line := []string{line[1:end]}, line[end+1:]
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return args
		}
		var arg string
		arg, line = splitArg(line)
		args = append(args, arg)
	}
}

func splitArg(line string) (arg, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); {
		slashes := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
		i += slashes
		mark := i < len(line) && line[i] == '"'
		if !mark {
			b.WriteString(strings.Repeat(`\`, slashes))
			if i == len(line) || !quoted && (line[i] == ' ' || line[i] == '\t') {
				return b.String(), line[i:]
			}
			b.WriteByte(line[i])
			i++
			continue
		}
		b.WriteString(strings.Repeat(`\`, slashes/2))
		switch {
		case slashes%2 == 1:
			b.WriteByte('"')
		case quoted && i+1 < len(line) && line[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			quoted = !quoted
		}
		i++
	}
	return b.String(), ""
}

// awkward are arguments that programs have been seen to get wrong.
var awkward = []string{
	"", " ", "a", "a b", "\t", `"`, `""`, `\`, `\\`, `\"`, `\\"`, `a\`, `a b\`, `a b\\`, `a"b`, `a\"b`, `"a b"`, "it's", "*", "*.go", "~", "$HOME",
	"%PATH%", "%%", "100%", "!x!", "^", "&", "a&b", "|", "<", ">", "(", ")", "@file", "{a,b}", "[a]", "#", ";", ",", "=", "/c", "-x", "--", "hällo",
	"日本", "🙂", `C:\Program Files\x\`, `\\server\share\`, "`", "a\nb", "%cd:~,%", "\u00a0", "/s", `\\?\C:\x`, "'", "?",
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		path string
		args []string
		want string
	}{
		{`C:\x.exe`, []string{"x"}, `"x"`},
		{`C:\x.exe`, []string{`C:\Program Files\x.exe`, "a b", ""}, `"C:\Program Files\x.exe" "a b" ""`},
		{`C:\x.exe`, []string{"x", `a\"b`, `c d\`}, `"x" "a\\\"b" "c d\\"`},
		{`C:\x.exe`, []string{"x", "plain-1/2.3", "it's"}, `"x" plain-1/2.3 "it's"`},
		// cmd.exe gets a line unchanged; it takes the outer marks away.
		{`C:\Windows\System32\cmd.exe`, []string{"cmd.exe", "/d", "/s", "/c", `echo "a b" & dir`}, `"cmd.exe" /d /s /c "echo "a b" & dir"`},
		{`C:\Windows\System32\CMD.EXE`, []string{"cmd", "/C", `"C:\a b\x.exe" "c d"`}, `"cmd" /s /C ""C:\a b\x.exe" "c d""`},
		{`C:\Windows\System32\cmd.exe`, []string{"cmd", "/k", "echo", "a b"}, `"cmd" /s /k "echo "a b""`},
		{`C:\Windows\System32\cmd.exe`, []string{"cmd"}, `"cmd"`},
		{`C:\Windows\System32\cmd.exe`, []string{"cmd", "/c"}, `"cmd" /c`},
		{`C:\Windows\System32\cmd.exe`, []string{"cmd", "a b", "/c", "x"}, `"cmd" "a b" /c x`},
		{`C:\xcmd.exe`, []string{"cmd.exe", "/c", `a "b"`}, `"cmd.exe" /c "a \"b\""`},
	} {
		if got, err := pty.CommandLine(c.path, c.args); got != c.want || err != nil {
			t.Errorf("of %q: %s, %v\nwant %s", c.args, got, err, c.want)
		}
	}
	for name, args := range map[string][]string{
		"NUL": {"x", "a\x00b"}, "mark in the name": {`x"y`}, "too long": {"x", strings.Repeat("y", 32767)}, "too long in UTF-16": {"x", strings.Repeat("🙂", 16384)},
	} {
		if line, err := pty.CommandLine("x.exe", args); err == nil {
			t.Errorf("%s: accepted as %d bytes", name, len(line))
		}
	}
	if _, err := pty.CommandLine("x.exe", []string{"x", strings.Repeat("🙂", 16300)}); err != nil {
		t.Errorf("not too long: %v", err)
	}
}

func TestAwkwardArguments(t *testing.T) {
	args := append([]string{`C:\Program Files\x.exe`}, awkward...)
	line := must.Get(pty.CommandLine(args[0], args))(t)
	check.Equal(t, fmt.Sprintf("%s:", line), args, splitLine(line))
}

// For any arguments, a program gets exactly these.
func FuzzCommandLine(f *testing.F) {
	for i := range awkward {
		f.Add(awkward[i], awkward[len(awkward)-1-i])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		args := []string{"x", a, b, a + b}
		line, err := pty.CommandLine(`C:\x.exe`, args)
		if err != nil {
			if !strings.Contains(a+b, "\x00") && len(a)+len(b) < 4000 {
				t.Errorf("%q: %v", args, err)
			}
			return
		}
		check.Equal(t, fmt.Sprintf("%s:", line), args, splitLine(line))
	})
}

// For any arguments, no part of them is outside quotation marks, where cmd.exe would take
// it for a command, and no percent sign begins a name.
func FuzzBatchLine(f *testing.F) {
	for _, a := range awkward {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, a string) {
		line, err := pty.BatchLine(`C:\a b\x.bat`, []string{a})
		if err != nil {
			if !strings.ContainsAny(a, "\x00\r\n") && len(a) < 1000 {
				t.Errorf("%q: %v", a, err)
			}
			return
		}
		if !utf8.ValidString(a) {
			return
		}
		const begin, end = `cmd.exe /d /e:on /v:off /s /c ""C:\a b\x.bat" "`, `""`
		rest, ok := strings.CutPrefix(line, begin)
		rest, ok2 := strings.CutSuffix(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%q became %s", a, line)
		}
		if strings.Count(rest, `"`)%2 != 0 || strings.Contains(strings.ReplaceAll(rest, `""`, ""), `"`) {
			t.Errorf("%q ends its quotation marks in %s", a, line)
		}
		if left := strings.ReplaceAll(rest, "%%cd:~,%", ""); strings.Contains(left, "%") {
			t.Errorf("%q has a percent sign of its own in %s", a, line)
		}
	})
}

func TestBatchLine(t *testing.T) {
	for _, path := range []string{`C:\a"b.bat`, `C:\100%.bat`, "C:\\a\nb.bat", `C:\a.bat\`} {
		if line, err := pty.BatchLine(path, nil); err == nil {
			t.Errorf("%q was accepted as %s", path, line)
		}
	}
	if line, err := pty.BatchLine(`C:\a.bat`, []string{strings.Repeat("x", 8191)}); err == nil {
		t.Errorf("%d characters were accepted", len(line))
	}
	for path, want := range map[string]bool{
		`C:\a.bat`: true, `C:\A.CMD`: true, `C:\a.bat. .`: true, `C:\a.exe`: false, `C:\bat`: false, `C:\a.bat\b`: false, `C:\a.batx`: false,
	} {
		if got := pty.IsBatch(path); got != want {
			t.Errorf("IsBatch(%q) = %t", path, got)
		}
	}
}

func TestFoldEnv(t *testing.T) {
	for _, c := range []struct{ env, want []string }{
		{nil, []string{`SystemRoot=C:\Windows`}},
		{[]string{"b=1", "A=2", "B=3", "a="}, []string{"a=", "B=3", `SystemRoot=C:\Windows`}},
		{[]string{"systemroot=D:\\W", "=C:=C:\\x", "none", "", "=", "X=a\x00b", "Y=a=b"}, []string{"=C:=C:\\x", "systemroot=D:\\W", "Y=a=b"}},
	} {
		check.Equal(t, fmt.Sprintf("of %q:", c.env), c.want, pty.FoldEnv(c.env, `C:\Windows`))
	}
	if v, ok := pty.LookupFold([]string{"PATH=1", "Path=2"}, "path"); v != "2" || !ok {
		t.Errorf("path is %q, %t; want the last one", v, ok)
	}
	if v, ok := pty.LookupFold([]string{"PATHS=1"}, "PATH"); ok {
		t.Errorf("PATH is %q", v)
	}
}
