package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// copyOfShell is a program of that name which is a shell, as an agent that tether does or
// does not know.
func copyOfShell(t *testing.T, name string) string {
	t.Helper()
	sh := must.Get(exec.LookPath("sh"))(t)
	program := must.Get(os.ReadFile(sh))(t)
	file := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(file, program, 0o700))
	return file
}

// below runs a line below a program, in the person's shell at a terminal, and waits for
// its end.
func below(t *testing.T, program, line string, env ...string) string {
	t.Helper()
	p := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", program + ` -c "$0; true"; true`, line}, Env: append(os.Environ(), append(env, "TERM=xterm")...)})
	p.exits(0)
	return p.shown()
}

// An unknown program at the person's terminal takes the sign away, and says what remains.
// [identity] gives it back once it is approved at another terminal, which neither a known
// agent nor the program itself can do.
func TestIdentityOfTheConfiguration(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	t.Setenv(tokenVar, "")
	if out, status := scripted(t, nil, "acp", "--as", "bob", "--", "true"); status != 0 {
		t.Fatalf("%d, %s", status, out)
	}
	ours, claude := copyOfShell(t, "ourtool"), copyOfShell(t, "claude")
	const try = `tether whoami; tether token create "x$$"; echo "status $?"`
	got := below(t, ours, try)
	for _, want := range []string{"user: no agent has started", `no sign of a person: process`, `("ourtool"), which is in no table of known programs, stands between`, "may not make a token", "another terminal", "notification", "TETHER_TOKEN_FILE", `[identity] mine = ["ourtool"]`, "status 6"} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("below an unknown program: %s, without %q", got, want)
		}
	}
	if got := below(t, claude, try); !strings.Contains(got, "agent claude: process") || !strings.Contains(got, "status 6") {
		t.Errorf("below a known agent: %s", got)
	}

	config := filepath.Join(home, "config", "config.toml")
	if out, _ := command(t, "config", "path"); out != "" {
		config = out
	}
	must.Do(t, os.MkdirAll(filepath.Dir(config), 0o700))
	must.Do(t, os.WriteFile(config, []byte("[identity]\nmine = [\"ourtool\"]\nagents = [\"theirs\"]\n"), 0o600))
	if out, status := scripted(t, nil, "daemon", "--replace", "--background"); status != 0 {
		t.Fatalf("%d, %s", status, out)
	}
	var question string
	testkit.Eventually(t, patience, "the question", func() bool {
		out, _ := scripted(t, nil, "approvals")
		if i := strings.Index(out, "q-"); i >= 0 {
			question = strings.Fields(out[i:])[0]
		}
		return question != ""
	})
	if out, _ := scripted(t, nil, "approvals", question); !strings.Contains(out, "the configuration in "+filepath.Dir(config)+" has changed") || !strings.Contains(out, `| [identity] mine = ["ourtool"], agents = ["theirs"]`) {
		t.Errorf("the question is %s", out)
	}
	if out, _ := scripted(t, nil, "status"); !strings.Contains(out, "[identity]") {
		t.Errorf("status: %s", out)
	}
	approve := fmt.Sprintf(`tether approve %s; echo "status $?"`, question)
	for _, program := range []string{ours, claude} {
		if got := below(t, program, approve); !strings.Contains(got, "status 6") {
			t.Errorf("%s has approved it: %s", program, got)
		}
	}
	if out, status := scripted(t, nil, "approve", question); status != localapi.ExitDenied {
		t.Errorf("a script has approved it: %d, %s", status, out)
	}
	if got := below(t, ours, try); !strings.Contains(got, "status 6") {
		t.Errorf("before it is approved: %s", got)
	}
	sit(t, "approve", question).exits(0)
	theirs := copyOfShell(t, "theirs")
	testkit.Eventually(t, patience, "the new identity", func() bool { return strings.Contains(below(t, theirs, "tether whoami"), "agent theirs: process") })
	for range 2 {
		if got := below(t, ours, try); !strings.Contains(got, "sign of a person: process") || !strings.Contains(got, "status 0") {
			t.Errorf("once it is approved: %s", got)
		}
		if out, status := scripted(t, nil, "daemon", "--replace", "--background"); status != 0 {
			t.Fatalf("%d, %s", status, out)
		}
	}
	if out, _ := scripted(t, nil, "approvals"); strings.Contains(out, "q-") {
		t.Errorf("the next daemon asks again: %s", out)
	}
}

// A daemon that an agent has started has none of the agent's marks. What an agent has
// left running counts as it by its mark.
func TestMarksOfAgents(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	t.Setenv(tokenVar, "")
	if got := below(t, copyOfShell(t, "claude"), `tether whoami`, "CLAUDECODE=1", "AI_AGENT=x"); !strings.Contains(got, "agent claude: process") {
		t.Fatal(got)
	}
	out, _ := command(t, "status", "--json")
	var status localapi.Status
	must.Do(t, json.Unmarshal([]byte(out), &status))
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", status.Pid))
	if err != nil || strings.Contains(string(environ), "CLAUDECODE") || strings.Contains(string(environ), "AI_AGENT") {
		t.Errorf("the daemon has %q, %v", environ, err)
	}
	if got := below(t, "sh", `tether whoami`); !strings.Contains(got, "user: no agent") || !strings.Contains(got, "sign of a person: process") {
		t.Errorf("the person's program: %s", got)
	}
	answer := filepath.Join(t.TempDir(), "out")
	orphan := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", `CLAUDECODE=1 setsid -f sh -c "tether whoami >$0.new 2>&1; mv $0.new $0"; until test -e $0; do sleep 0.01; done; cat $0`, answer}, Env: append(os.Environ(), "TERM=xterm")})
	orphan.sees(`agent claude: the environment of process`, "CLAUDECODE=1")
	orphan.exits(0)
}

// The panes of a server of tmux that an agent has started are the person's, although they
// have the agent's marks. Terminals that the person starts there do not have them.
func TestPanesOfAnAgentsTmux(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	needs(t, "tmux")
	newHome(t)
	t.Setenv(tokenVar, "")
	socket, out := filepath.Join(shortDir(t), "tmux"), filepath.Join(t.TempDir(), "out")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() }) // it ends with its last pane, too
	const inPane = `exec >%[1]s.new 2>&1; echo "pane $CLAUDECODE"; tether whoami; tether run -- sh -c "echo terminal [\$CLAUDECODE]"; mv %[1]s.new %[1]s`
	below(t, copyOfShell(t, "claude"), fmt.Sprintf(`tmux -S %s -f /dev/null new-session -d '%s'`, socket, fmt.Sprintf(inPane, out)), "CLAUDECODE=1")
	var text []byte
	testkit.Eventually(t, patience, "the answer in the pane", func() bool {
		var err error
		text, err = os.ReadFile(out)
		return err == nil
	})
	for _, want := range []string{"pane 1\n", "\nuser: no agent", "\nsign of a person: process", "\nterminal []\n"} {
		if !strings.Contains(strings.ReplaceAll(string(text), "\r", ""), want) {
			t.Errorf("the pane is told %s, without %q", text, want)
		}
	}
}
