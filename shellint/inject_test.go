package shellint_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/shellint"
)

func TestInjectPlans(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	const dir = "/run/it's"
	const powershell = "if ($ExecutionContext.SessionState.LanguageMode -eq 'FullLanguage') " +
		"{ . ([ScriptBlock]::Create([IO.File]::ReadAllText('/run/it''s/tether.ps1'))) }"
	tests := []struct {
		name   string
		argv   []string
		login  bool
		kind   shellint.Shell
		want   []string
		file   string
		env    map[string]string
		detect bool
	}{
		{name: "bash", argv: []string{"bash"}, kind: "bash", want: []string{"bash", "--rcfile", dir + "/bashrc"}, file: "bashrc", detect: true},
		{name: "bash by path, interactive", argv: []string{"/bin/bash", "-i"}, kind: "bash",
			want: []string{"/bin/bash", "--rcfile", dir + "/bashrc", "-i"}, file: "bashrc", detect: true},
		{name: "bash login", argv: []string{"bash", "-l"}, kind: "bash", want: []string{"bash", "--rcfile", dir + "/bashrc"}, file: "bashrc", detect: true},
		{name: "bash login by name", argv: []string{"-bash"}, kind: "bash", want: []string{"bash", "--rcfile", dir + "/bashrc"}, file: "bashrc", detect: true},
		{name: "bash command", argv: []string{"bash", "-c", "ls"}, kind: "bash", want: []string{"bash", "-c", "ls"}},
		{name: "bash script", argv: []string{"bash", "x.sh"}, kind: "bash", want: []string{"bash", "x.sh"}},
		{name: "bash norc", argv: []string{"bash", "--norc"}, login: true, kind: "bash", want: []string{"bash", "--norc"}},
		{name: "versioned", argv: []string{"zsh-5.9"}, kind: "zsh", want: []string{"zsh-5.9"}, file: ".zshenv",
			env: map[string]string{"ZDOTDIR": dir}, detect: true},
		{name: "zsh login asked for", argv: []string{"/bin/zsh"}, login: true, kind: "zsh", want: []string{"/bin/zsh", "-l"}, file: ".zshenv",
			env: map[string]string{"ZDOTDIR": dir}, detect: true},
		{name: "zsh login by name", argv: []string{"-zsh", "-i"}, kind: "zsh", want: []string{"-zsh", "-i"}, file: ".zshenv",
			env: map[string]string{"ZDOTDIR": dir}, detect: true},
		{name: "zsh without files", argv: []string{"zsh", "-f"}, kind: "zsh", want: []string{"zsh", "-f"}},
		{name: "fish", argv: []string{"fish", "--private"}, login: true, kind: "fish",
			want: []string{"fish", "-l", "--private", "--init-command", `source '/run/it\'s/tether.fish'`}, file: "tether.fish", detect: true},
		{name: "nu", argv: []string{"nu"}, kind: "nu", want: []string{"nu", "--execute", `source "/run/it's/tether.nu"`}, file: "tether.nu", detect: true},
		{name: "pwsh", argv: []string{"pwsh", "-NoLogo"}, login: true, kind: "pwsh",
			want: []string{"pwsh", "-Login", "-NoLogo", "-NoExit", "-Command", powershell},
			file: "tether.ps1", detect: true},
		{name: "Windows PowerShell", argv: []string{`C:\Windows\PowerShell.EXE`}, login: true, kind: "pwsh",
			want: []string{`C:\Windows\PowerShell.EXE`, "-NoExit", "-Command", powershell},
			file: "tether.ps1", detect: true},
		{name: "pwsh command", argv: []string{"pwsh", "-c", "ls"}, kind: "pwsh", want: []string{"pwsh", "-c", "ls"}},
		{name: "cmd", argv: []string{"cmd.exe"}, kind: "cmd", want: []string{"cmd.exe"},
			env: map[string]string{"PROMPT": `$E]633;A$E\$E]9;9;$P$E\$P$G$E]633;B$E\`}},
		{name: "sh", argv: []string{"sh", "-i"}, want: []string{"sh", "-i"}},
		{name: "another program", argv: []string{"vim"}, want: []string{"vim"}},
		{name: "restricted bash", argv: []string{"rbash"}, want: []string{"rbash"}},
		{name: "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := must.Get(shellint.Inject(tt.argv, shellint.InjectOptions{Nonce: testNonce, Dir: dir, Login: tt.login}))(t)
			file := ""
			for _, f := range got.Files {
				file += f.Name
				checkFile(t, f, filepath.Join(dir, f.Name))
			}
			got.Files = nil
			want := shellint.Injection{Kind: tt.kind, Argv: tt.want, Env: tt.env, Detect: tt.detect}
			check.Equal(t, fmt.Sprintf("Inject(%q): ", tt.argv), want, got)
			if file != tt.file {
				t.Errorf("Inject(%q) writes %q, want %q", tt.argv, file, tt.file)
			}
		})
	}
}

// checkFile: private, complete, and the nonce is nowhere but in it.
func checkFile(t *testing.T, f shellint.File, path string) {
	t.Helper()
	if f.Mode != 0o600 {
		t.Errorf("mode of %s is %o", f.Name, f.Mode)
	}
	text := string(f.Content)
	if !strings.Contains(text, testNonce) {
		t.Errorf("%s has no nonce", f.Name)
	}
	for _, name := range []string{"NONCE", "FILE", "RESTORE", "LOGIN", "MODERN"} {
		if strings.Contains(text, "@"+name+"@") {
			t.Errorf("%s: @%s@ was not replaced", f.Name, name)
		}
	}
}

func TestInjectKeepsZDOTDIR(t *testing.T) {
	for value, want := range map[string]string{"": "unset ZDOTDIR\n", "/home/o'neill/.zsh": `export ZDOTDIR='/home/o'\''neill/.zsh'` + "\n"} {
		getenv := func(name string) string {
			if name == "ZDOTDIR" {
				return value
			}
			return ""
		}
		plan := must.Get(shellint.Inject([]string{"zsh"}, shellint.InjectOptions{Nonce: testNonce, Dir: "/d", Getenv: getenv}))(t)
		if text := string(plan.Files[0].Content); !strings.Contains(text, "\n"+want) {
			t.Errorf("ZDOTDIR=%q: the script has no line %q", value, want)
		}
	}
}

func TestInjectRefuses(t *testing.T) {
	tests := map[string]shellint.InjectOptions{
		"no nonce":                      {Dir: "/d"},
		"short nonce":                   {Dir: "/d", Nonce: "abc"},
		"nonce that ends a field":       {Dir: "/d", Nonce: "12345678;x"},
		"nonce that ends a string":      {Dir: "/d", Nonce: "12345678'"},
		"nonce with a prompt character": {Dir: "/d", Nonce: "12345678%n"},
		"long nonce":                    {Dir: "/d", Nonce: strings.Repeat("x", 129)},
		"no folder":                     {Nonce: testNonce},
		"folder with a newline":         {Nonce: testNonce, Dir: "/d\n"},
	}
	for name, o := range tests {
		if plan, err := shellint.Inject([]string{"bash"}, o); err == nil {
			t.Errorf("%s: Inject gave %q", name, plan.Argv)
		}
	}
	// A shell without integration needs no options.
	if _, err := shellint.Inject([]string{"sh"}, shellint.InjectOptions{}); err != nil {
		t.Errorf("sh: %v", err)
	}
}

func TestInjectSharesNothing(t *testing.T) {
	argv := []string{"bash", "-i"}
	plan := must.Get(shellint.Inject(argv, shellint.InjectOptions{Nonce: testNonce, Dir: "/d"}))(t)
	plan.Argv[0] = "changed"
	if diff := cmp.Diff([]string{"bash", "-i"}, argv); diff != "" {
		t.Error(diff)
	}
}

// The caller writes the files, starts the shell, and gives the nonce to the Scanner of
// its output.
func ExampleInject() {
	plan, err := shellint.Inject([]string{"/bin/zsh"}, shellint.InjectOptions{
		Nonce: "0mT9x2QvKc4aWbRz", // from crypto/rand, for this terminal alone
		Dir:   "/run/user/1000/tether/sh/1",
		Login: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(plan.Argv, plan.Env, plan.Files[0].Name, plan.Detect)
	// Output: [/bin/zsh -l] map[ZDOTDIR:/run/user/1000/tether/sh/1] .zshenv true
}
