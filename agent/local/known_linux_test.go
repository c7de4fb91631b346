package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

// simulated is an agent as a real program: a file that runs the line that is its
// argument, as an agent runs commands.
type simulated struct {
	file string // below a directory of the test
	// with is the interpreter of the text; "" means a copy of sh.
	with, text string
	name       string // of the agent; "" for a program that is in no table
}

const (
	nodeAgent   = `require("child_process").spawnSync("sh", ["-c", process.argv[2]], {stdio: "inherit"})`
	pythonAgent = "import subprocess, sys\nsubprocess.run(['sh', '-c', sys.argv[1]])"
	shellAgent  = "sh -c \"$1\"\ntrue"
)

var simulations = []simulated{
	{file: "bin/claude", name: "claude"},
	{file: "share/claude/versions/2.1.197", name: "claude"},
	{file: "node_modules/@openai/codex-linux-x64/vendor/bin/codex", name: "codex"},
	{file: "bin/cursor-agent", name: "cursor-agent"},
	{file: "bin/opencode", name: "opencode"},
	{file: "bin/goose", with: "sh", text: shellAgent, name: "goose"},
	{file: "aider.py", with: "python3", text: pythonAgent, name: "aider"},
	{file: "node_modules/@qwen-code/qwen-code/cli.js", with: "node", text: nodeAgent, name: "qwen"},
	{file: "node_modules/@google/gemini-cli/dist/index.js", with: "node", text: nodeAgent, name: "gemini"},
	{file: "share/cursor-agent/versions/1/index.js", with: "node", text: nodeAgent, name: "cursor-agent"},
	{file: "bin/newagent"},
	{file: "bin/vim"},
	{file: "bin/make"},
	{file: "newagent.py", with: "python3", text: pythonAgent},
	{file: "bin/npm", with: "node", text: nodeAgent},
}

// put writes the program and returns the words of a shell that start it.
func (s simulated) put(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, s.file)
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	if s.with != "" {
		with, err := exec.LookPath(s.with)
		if err != nil {
			t.Skipf("no %s", s.with)
		}
		must.Do(t, os.WriteFile(file, []byte(s.text), 0o600))
		return with + " " + file
	}
	sh := must.Get(exec.LookPath("sh"))(t)
	program := must.Get(os.ReadFile(sh))(t)
	must.Do(t, os.WriteFile(file, program, 0o700))
	return file + " -c"
}

// The programs that a known agent has started in a pane of the person's are that agent's
// from the first on, in a terminal of its own, too, and after they have lost their
// parents. Those below an unknown program are the person's, without a sign.
func TestProgramsBelowAgents(t *testing.T) {
	for _, s := range simulations {
		t.Run(s.file, func(t *testing.T) {
			d := openReal(t, local.Options{Agents: local.OpenAgents(t.TempDir())})
			start := s.put(t, t.TempDir())
			// each line of the answers is one way in which the agent runs the test's
			// program
			const ways = `"$SELF"; echo; script -qec '"$SELF" >own' /dev/null >/dev/null; cat own; echo; (setsid sh -c '"$SELF"; echo') | cat; ("$SELF" &) | cat; echo`
			got := d.says(t, term.User, fmt.Sprintf(`exec >out.tmp; set -m; "$SELF"; echo; %s '%s'; "$SELF"; echo; mv out.tmp out`, start, strings.ReplaceAll(ways, "'", `'\''`)), sayVar+"=whoami")
			lines := strings.Split(strings.TrimSpace(got), "\n")
			if len(lines) != 6 {
				t.Fatalf("%d answers: %s", len(lines), got)
			}
			for i, line := range lines {
				f := strings.Split(line, "|")
				switch beside := i == 0 || i == 5; {
				case beside && (f[0] != "user" || f[2] == ""):
					t.Errorf("beside the agent: %s", line)
				case !beside && s.name != "" && f[0] != "agent "+s.name:
					t.Errorf("way %d: %s, want agent %s", i, line, s.name)
				case !beside && s.name == "" && (f[0] != "user" || f[2] != ""):
					t.Errorf("way %d: %s, want the user without a sign", i, line)
				}
			}
		})
	}
}

// tether mcp --as gives a known agent its name: it is not refused as another agent, and
// counts for the agent's other programs from then on.
func TestKnownAgentsTakeAName(t *testing.T) {
	agents := local.OpenAgents(t.TempDir())
	d := openReal(t, local.Options{Agents: agents})
	start := simulated{file: "bin/claude"}.put(t, t.TempDir())
	got := d.says(t, term.User, fmt.Sprintf(`exec >out.tmp; set -m; %s '"$SELF"; echo; TETHER_TEST_SAY=mcp sh -c "\"\$SELF\"; true" </dev/null; "$SELF"; echo; (setsid "$SELF") | cat; echo'; "$SELF"; mv out.tmp out`, start), sayVar+"=whoami")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	for i, want := range []string{"agent claude|", "served", "agent bob|", "agent bob|", "user|"} {
		if len(lines) != 5 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("answer %d is not %s: %s", i, want, got)
		}
	}
	if !agents.Used() {
		t.Error("no agent has used this home")
	}
}

// A program that only has the name of an editor or a wrapper is recorded as the agent
// that it is, and so is all that it starts.
func TestNamesAloneAreRecorded(t *testing.T) {
	for _, name := range []string{"java", "kiro", "cursor", "code", "zed", "tabby", "warp", "warp-terminal", "st", "op", "time", "nvim", "tmux", "npx"} {
		t.Run(name, func(t *testing.T) {
			d := openReal(t, local.Options{Agents: local.OpenAgents(t.TempDir())})
			start := simulated{file: "x/" + name}.put(t, t.TempDir())
			got := d.says(t, term.User, fmt.Sprintf(`exec >out.tmp; set -m; %s '"$SELF"; echo; TETHER_TEST_SAY=mcp sh -c "\"\$SELF\"; true" </dev/null; "$SELF"; echo; setsid "$SELF" | cat; echo'; "$SELF"; mv out.tmp out`, start), sayVar+"=whoami")
			lines := strings.Split(strings.TrimSpace(got), "\n")
			if len(lines) != 5 || !strings.HasPrefix(lines[0], "user|") || strings.Split(lines[0], "|")[2] != "" || lines[1] != "served" ||
				!strings.HasPrefix(lines[2], "agent bob|") || !strings.HasPrefix(lines[3], "agent bob|") || !strings.HasPrefix(lines[4], "user|") {
				t.Error(got)
			}
		})
	}
}
