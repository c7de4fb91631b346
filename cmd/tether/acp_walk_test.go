package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// acpWalk returns the README's part on editors: the agent's command in the settings, and
// the lines for a prompt.
func acpWalk(t *testing.T) (argv, lines []string) {
	t.Helper()
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, text, _ := strings.Cut(string(readme), "## An agent in your editor")
	text, _, _ = strings.Cut(text, "\n## ")
	parts := strings.Split(text, "```")
	if len(parts) < 5 {
		t.Fatal("the README's section about editors has no examples")
	}
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"agent_servers"`
	}
	must.Do(t, json.Unmarshal([]byte(strings.TrimPrefix(parts[1], "json")), &settings))
	for line := range strings.Lines(strings.TrimSpace(strings.TrimPrefix(parts[3], "sh"))) {
		code, _, _ := strings.Cut(line, "  #")
		lines = append(lines, strings.TrimSpace(code))
	}
	server := settings.Servers["Kimi"]
	return append([]string{server.Command}, server.Args...), lines
}

// TestACPWalk follows the README: a command of an agent in an editor runs here, is
// watched at the host, and is answered by the person.
func TestACPWalk(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, lines := acpWalk(t)
	if strings.Join(argv, " ") != "tether acp --as kimi -- kimi acp" || len(lines) != 3 {
		t.Fatalf("the README says %q and %q", argv, lines)
	}
	home := acpHome(t)
	h := &testHost{}
	must.Do(t, h.start("secret"))
	t.Cleanup(h.stop)
	token := filepath.Join(home, "token")
	must.Do(t, os.WriteFile(token, []byte("secret"), 0o600))
	tether := func(line string) *exec.Cmd {
		words := strings.Fields(line)
		c := exec.Command(words[0], words[1:]...)
		c.Env = append(os.Environ(), "TETHER_HOME="+home, allowRootVar+"=1", "NO_COLOR=1")
		return c
	}
	if out, err := tether("tether pair --name local --token-file " + token + " ws://" + h.address).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	watch := tether(lines[0])
	var seen testkit.Output
	watch.Stdout, watch.Stderr = &seen, &seen
	must.Do(t, watch.Start())
	t.Cleanup(func() { watch.Process.Kill(); watch.Wait() })

	_, kimi, env := kimi(t, "echo made by an agent; read answer; echo you said $answer")
	e := editAs(t, home, argv[2:4], kimi, env).opens(object{"_meta": object{"terminal_output": true}})
	id := e.asks("session/prompt", prompt(e.session, "go on"))
	for !strings.Contains(e.seen(), "made by an agent\\r") {
		e.next()
	}
	testkit.Eventually(t, patience, "the host sees it", func() bool { return strings.Contains(seen.String(), "made by an agent") })
	out, err := tether(lines[1]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "local") {
		t.Errorf("%v\n%s", err, out)
	}
	ref := strings.Fields(strings.Split(string(out), "\n")[1])[0]
	if lines[2] != "tether attach ID" {
		t.Errorf("the README says %s", lines[2])
	}
	att := must.Get(e.client.Attach(t.Context(), ref, localclient.AttachOptions{}))(t)
	defer att.Close()
	must.Do(t, att.Write(t.Context(), []byte("yes\r")))
	e.answered(id)
	for !strings.Contains(e.seen(), `"exit_code":0`) {
		e.next() // the end of the terminal may come after that of the turn
	}
	if !strings.Contains(e.seen(), "terminal_info") || !strings.Contains(e.seen(), `you said yes\r`) {
		t.Errorf("the editor sees\n%s", e.seen())
	}
	testkit.Eventually(t, patience, "the host sees the answer", func() bool { return strings.Contains(seen.String(), "you said yes") })
}
