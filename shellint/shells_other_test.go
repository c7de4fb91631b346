package shellint_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/shellint"
)

// TestNushell runs where nushell is installed; it has no package in most distributions.
// It asks the terminal where the cursor is and waits for the answer.
func TestNushell(t *testing.T) {
	path := shellPath(t, "nu")
	s := startShell(t, shell{
		argv:    []string{path},
		env:     []string{"XDG_CONFIG_HOME=/nonexistent", "XDG_DATA_HOME=/nonexistent"},
		files:   map[string]string{"evil": "\x1b]633;D;0\a\x1b]133;D;0\x1b\\\x1b]633;E;rm\a\x1b]633;C\aseen\n"},
		answers: true,
	})
	lines := []ran{{"echo hi", 0}, {"^false", 1}, {"cd /tmp", 0}, {"^sh -c 'exit 3'", 3}, {"error make {msg: x}", 1},
		{"print 'a;b\\c'; print \"ü ✜\"", 0}, {"open --raw " + filepath.Join(s.home, "evil"), 0}, {"^sh -c 'exit 4'", 4}}
	s.wait("prompt", func() bool { return s.prompts() == 1 })
	for i, line := range lines {
		s.send(line.Line + "\r")
		s.wait("prompt", func() bool { return s.prompts() == i+2 })
	}
	for i, nothing := range []string{"", "# comment"} {
		s.send(nothing + "\r")
		s.wait("prompt", func() bool { return s.prompts() == len(lines)+i+2 })
	}
	s.wantCommands(lines)
	s.wantCwd("/tmp")
	if _, clean := s.written(); strings.Contains(clean, "]633") || strings.Contains(clean, "]133") {
		t.Error("marks are left in the clean output")
	}
}

// prompts counts our prompt marks. The caller holds mu.
func (s *session) prompts() int {
	n := 0
	for _, m := range s.marks {
		if m.Kind == shellint.KindPromptStart && m.Trusted {
			n++
		}
	}
	return n
}

// Shells that are not integrated work, and write nothing of ours.
func TestOtherShells(t *testing.T) {
	for _, name := range []string{"sh", "dash", "ksh", "mksh", "busybox"} {
		t.Run(name, func(t *testing.T) {
			path := shellPath(t, name)
			sh := shell{argv: []string{path}}
			if name == "busybox" {
				sh.argv = append(sh.argv, "sh")
			}
			s := startShell(t, sh)
			s.typeUnreported("PS1='"+ready[:3]+"''"+ready[3:]+"'", "false", "echo $?")
			if raw, _ := s.written(); strings.Contains(raw, testNonce) || s.commands() != nil {
				t.Errorf("it wrote %q", raw)
			}
		})
	}
}

// The scripts parse in every version, even if they use features that it lacks.
func TestScriptsParse(t *testing.T) {
	for name, argv := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		for _, path := range versions(t, name) {
			plan := must.Get(shellint.Inject([]string{name}, shellint.InjectOptions{Nonce: testNonce, Dir: t.TempDir()}))(t)
			file := filepath.Join(t.TempDir(), plan.Files[0].Name)
			must.Do(t, os.WriteFile(file, plan.Files[0].Content, 0o600))
			if out, err := exec.Command(path, append(argv, file)...).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
				t.Errorf("%s: %v\n%s", path, err, out)
			}
		}
	}
}

// The script of a login bash reads the files that a login bash reads, in the same order,
// although bash has no hook there.
func TestBashStartupFiles(t *testing.T) {
	tests := []struct {
		name  string
		login bool
		files []string
		want  string
	}{
		{"plain", false, []string{".bashrc", ".bash_profile", ".profile"}, ".bashrc"},
		{"login", true, []string{".bashrc", ".bash_profile", ".bash_login", ".profile"}, ".bash_profile"},
		{"second", true, []string{".bashrc", ".bash_login", ".profile"}, ".bash_login"},
		{"third", true, []string{".bashrc", ".profile"}, ".profile"},
		{"none", true, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := shellPath(t, "bash")
			read := func(plain bool) string {
				sh := shell{argv: []string{path}, plain: plain, env: []string{"PS1=" + ready}, files: map[string]string{}}
				if tt.login {
					sh.argv = append(sh.argv, "-l")
				}
				for _, name := range tt.files {
					sh.files[name] = "PS1='" + ready + "'; echo " + name + " \"$*\" $? >>$LOG; false\n"
				}
				sh.files["log"] = ""
				s := startShell(t, sh)
				if len(tt.files) > 0 {
					s.waitPrompt(0)
				} else {
					s.wait("prompt", func() bool { return len(s.clean) > 0 })
				}
				s.send("echo $? >>$LOG; exit\r")
				s.waitEnd()
				return strings.Join(s.log(), "|")
			}
			plain, integrated := read(true), read(false)
			if plain != integrated || !strings.HasPrefix(plain, tt.want) {
				t.Errorf("bash reads and says %q, with integration %q; want %q first", plain, integrated, tt.want)
			}
		})
	}
}

// PowerShell's script is parsed by PowerShell where it is installed, else by
// tree-sitter's grammar if TETHER_TEST_NODE_MODULES names a folder with the npm packages
// web-tree-sitter and tree-sitter-powershell.
func TestPowerShellParses(t *testing.T) {
	plan := must.Get(shellint.Inject([]string{"pwsh"}, shellint.InjectOptions{Nonce: testNonce, Dir: "/d"}))(t)
	file := filepath.Join(t.TempDir(), "tether.ps1")
	must.Do(t, os.WriteFile(file, plan.Files[0].Content, 0o600))
	cmd := exec.Command("pwsh", "-NoProfile", "-Command", "$e = $null; [void][Management.Automation.Language.Parser]::ParseFile($env:FILE, [ref]$null, [ref]$e); $e")
	if _, err := exec.LookPath("pwsh"); err != nil {
		modules := os.Getenv("TETHER_TEST_NODE_MODULES")
		if modules == "" {
			t.Skip("pwsh is not installed, and TETHER_TEST_NODE_MODULES does not name a grammar")
		}
		cmd = exec.Command(shellPath(t, "node"), "--liftoff-only", "--input-type=module", "-e", treeSitter)
		cmd.Env = append(os.Environ(), "MODULES="+modules)
	}
	cmd.Env = append(cmd.Environ(), "FILE="+file)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// treeSitter prints the places that the grammar does not know.
const treeSitter = `
import fs from "fs";
const modules = process.env.MODULES;
const { Parser, Language } = await import(modules + "/web-tree-sitter/web-tree-sitter.js");
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(modules + "/tree-sitter-powershell/tree-sitter-powershell.wasm"));
const show = (node) => {
  if (node.isError || node.isMissing) console.log(node.startPosition, node.text.slice(0, 200));
  node.children.forEach(show);
};
show(parser.parse(fs.readFileSync(process.env.FILE, "utf8")).rootNode);
`
