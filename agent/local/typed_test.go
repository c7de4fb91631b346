package local_test

import (
	"os/exec"
	"strings"
	"testing"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// typists starts a server whose agents may start the programs.
func typists(t *testing.T, change func(*config.Policy), programs ...string) (*world, *policy.Engine) {
	t.Helper()
	p := policyAllowing(programs...)
	p.Limits.SpawnsPerMinute, p.Limits.Background, p.Limits.Questions = 10_000, 100, 100
	if change != nil {
		change(&p)
	}
	e := must.Get(policy.New(policy.Options{Config: p}))(t)
	return serve(t, local.Options{Policy: e}, term.Options{}), e
}

const (
	passes  = ""
	blocked = "Command blocked for security reasons"
	control = "at a shell's prompt, control characters"
	earlier = "at a shell's prompt, ! and ^"
	asks    = "nothing was typed: the line needs the user's approval"
)

// An agent's input is judged wherever a shell may read it: in a shell, in a program that
// contains one, and, as far as it would be denied, in an unknown program.
func TestTypedLines(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	shells := []string{"bash -i", "env bash", "script -q /dev/null", "screen", "tmux", "ssh host", "docker exec -it c bash", "dtach -A s bash", "sudo -s", "fish"}
	w, _ := typists(t, nil, "bash", "env", "script", "screen", "tmux", "ssh", "docker", "dtach", "sudo", "fish", "python3", "psql", "ghci", "cat", "npm", "gdb")
	a := w.agent("claude")
	for _, c := range []struct {
		programs []string
		input    string
		want     string
	}{
		{shells, "ls -l\r", passes},
		{shells, "npm test\ngo build ./...\n", passes},
		{shells, "y\r", passes},
		{shells, "\x03", passes},
		{shells, "\x04", passes},
		{shells, "\x1a\x0c", passes},
		{shells, "for i in 1 2\ndo echo $i\ndone\n", passes},
		{shells, "echo größe\r", passes},
		{shells, "rm -rf /tmp/x\r", blocked},
		{shells, "ls\nsudo ls\n", blocked},
		{shells, "echo x > /dev/sda\r", blocked},
		{shells, "r\\\nm x\r", blocked},
		{shells, "\x15rm x\r", control},
		{shells, "xrm y\x7f\r", control},
		{shells, "echo\x17rm x\r", control},
		{shells, "echo\brm x\r", control},
		{shells, "\x1b[200~rm x\r\x1b[201~", control},
		{shells, "\x1b[A\r", control},
		{shells, "ls\t\r", control},
		{shells, "\x12rm\r", control},
		{shells, "\u0085ls\r", control},
		{shells, "^ls^rm\r", earlier},
		{shells, "!!\r", earlier},
		{shells, "!rm:p\r", earlier},
		{shells, "echo 'a!b' \"$!\" && [ ! -f x ]\r", passes},
		{shells, "node -e 1\r", asks},
		{shells, "git clean -fd\r", asks},
		{shells, "unfinished 'quote\r", asks},
		{[]string{"python3 -q", "ghci"}, "import os; print(os.getcwd())\r", passes},
		{[]string{"python3 -q"}, "for i in range(3):\n    print(f'{i}')\n\n", passes},
		{[]string{"psql"}, "DELETE FROM t WHERE x = 'y';\r", passes},
		{[]string{"psql", "gdb ./x"}, "\x1b[A\r\x15", passes},
		{[]string{"npm init", "python3 -q", "npm run shell"}, "\x1b[B\r", passes},
		{[]string{"npm run shell", "python3 -q"}, "git clean -fd\r", passes},
		{[]string{"npm run shell", "python3 -q", "psql"}, "rm -rf x\r", blocked},
		{[]string{"npm run shell"}, "xx\x15rm y\r", blocked},
		{[]string{"npm run shell"}, "rmx\x7f y\r", blocked},
		{[]string{"cat", "cat -n"}, "rm -rf x\r", passes},
	} {
		for _, program := range c.programs {
			m := a.spawn(strings.Fields(program)...)
			child := <-w.children
			got, isError := a.call("write_terminal", args{"terminalId": m.ID, "input": c.input})
			if c.want == passes && isError || c.want != passes && (!isError || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s, %q: %s, want %q", program, c.input, got, c.want)
			}
			if c.want != passes && child.Typed() != "" {
				t.Errorf("%s, %q: %q was typed", program, c.input, child.Typed())
			}
			a.call("kill_terminal", args{"terminalId": m.ID})
		}
	}
}

// Text already on the line is a part of it.
func TestLinesInPieces(t *testing.T) {
	w, _ := typists(t, nil, "bash", "npm")
	a := w.agent("claude")
	for _, program := range []string{"bash -i", "npm run shell"} {
		m := a.spawn(strings.Fields(program)...)
		child := <-w.children
		for _, c := range []struct{ input, want string }{
			{"r", passes}, {"m x", passes}, {"\r", blocked}, {"\x03", passes}, {"ls\r", passes}, {"echo ", passes}, {"rm\r", passes}, {"rm x\\", passes}, {"\n y\r", blocked}, {"\x03echo y\r", passes},
		} {
			got, isError := a.call("write_terminal", args{"terminalId": m.ID, "input": c.input})
			if isError != (c.want != passes) || c.want != passes && got != c.want {
				t.Errorf("%s, %q: %s, want %q", program, c.input, got, c.want)
			}
		}
		if typed := child.Typed(); strings.Contains(typed, "rm x\r") {
			t.Errorf("%s: %q was typed", program, typed)
		}
	}
}

// A line that is asked about is refused with the question's id, and passes once that is
// approved.
func TestTypedLinesAreAskedAbout(t *testing.T) {
	w, e := typists(t, nil, "bash")
	a := w.agent("claude")
	m := a.spawn("bash", "-i")
	child := <-w.children
	input := args{"terminalId": m.ID, "input": "python3 -c 1\r"}
	for range 2 {
		got, isError := a.call("write_terminal", input)
		all, _, _ := e.Questions()
		if len(all) != 1 || !isError || !strings.Contains(got, all[0].ID) {
			t.Fatalf("%s; the questions are %+v", got, all)
		}
	}
	all, _, _ := e.Questions()
	if _, _, err := e.Answer(all[0].ID, policy.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	if got, isError := a.call("write_terminal", input); isError {
		t.Errorf("once it is approved: %s", got)
	}
	testkit.Eventually(t, patience, "that it was typed once", func() bool { return child.Typed() == "python3 -c 1\r" })
	if got, isError := a.call("write_terminal", input); !isError {
		t.Errorf("a second time: %s", got)
	}
}

func TestTypingFree(t *testing.T) {
	w, _ := typists(t, func(p *config.Policy) {
		p.Principals = []config.PolicyIdentity{{Name: "agent:claude", Typing: "free"}}
	}, "bash")
	a := w.agent("claude")
	m := a.spawn("bash", "-i")
	child := <-w.children
	if got, isError := a.call("write_terminal", args{"terminalId": m.ID, "input": "\x15rm x\r"}); isError {
		t.Error(got)
	}
	testkit.Eventually(t, patience, "that it was typed", func() bool { return child.Typed() == "\x15rm x\r" })
}

// The audit log has the beginning of the input, without credentials.
func TestTypingIsAudited(t *testing.T) {
	w, e := typists(t, nil, "bash", "cat", "python3")
	a := w.agent("claude")
	for _, program := range []string{"bash", "python3", "cat"} {
		m := a.spawn(program)
		<-w.children
		a.call("write_terminal", args{"terminalId": m.ID, "input": "echo " + strings.Repeat("x", 300) + "\r"})
		a.call("write_terminal", args{"terminalId": m.ID, "input": "login --password=hunter2 " + program + "\r"})
	}
	var lines []string
	for _, r := range e.Recent() {
		if r.Event == policy.EventInput {
			lines = append(lines, r.Line)
			if r.Actor != "agent:claude" || r.Terminal == "" || len(r.Line) > 260 {
				t.Errorf("%+v", r)
			}
		}
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "login --password=[hidden]") {
		t.Errorf("the log has %q", lines)
	}
}

// In a real terminal, a program in front of the shell reads the keys itself.
func TestTypingInARealShell(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	p := policyAllowing(bash)
	e := must.Get(policy.New(policy.Options{Config: p}))(t)
	w := serve(t, local.Options{Policy: e}, term.Options{Start: func(_ term.ID, c pty.Command) (term.PTY, error) { return pty.Start(c) }})
	a := w.agent("claude")
	m := a.spawn(bash, "--norc", "--noprofile", "-i")
	write := func(input string) (string, bool) {
		return a.call("write_terminal", args{"terminalId": m.ID, "input": input})
	}
	testkit.Eventually(t, patience, "a prompt that takes no escape sequence", func() bool {
		got, isError := write("\x1b[A")
		return isError && strings.HasPrefix(got, control)
	})
	if got, isError := write("/bin/cat\r"); isError {
		t.Fatal(got)
	}
	testkit.Eventually(t, patience, "that cat takes any key", func() bool {
		_, isError := write("\x1b[A")
		return !isError
	})
	if got, isError := write("rm x\r"); isError {
		t.Errorf("cat runs nothing: %s", got)
	}
	if got, isError := write("\x03"); isError {
		t.Error(got)
	}
	testkit.Eventually(t, patience, "the prompt again", func() bool {
		got, isError := write("rm x\r")
		return isError && got == blocked
	})
}
