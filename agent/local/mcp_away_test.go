package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// secretValue is in the environment of every terminal that away's agents start.
const secretValue = "hunter2-value"

// away is a world whose agents at hosts may run commands that no rule denies.
func away(t *testing.T) *world {
	t.Helper()
	rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
	c := config.Default().Policy
	c.Principals = []config.PolicyIdentity{{Name: "agent:lab/*", Default: "allow", SpawnsPerMinute: 100, Background: 100}}
	engine := must.Get(policy.New(policy.Options{Config: c}))(t)
	confine := func(a term.Actor, s *term.Spec) error {
		s.LendTo, s.Env = []string{a.At()}, []string{"MY_TOKEN=" + secretValue} // as the rest of the daemon does
		return nil
	}
	secrets := func(env []string) []string { return redact.Values(env, []string{"*TOKEN*"}) }
	return serveConfined(t, local.Options{Policy: engine}, term.Options{Outward: rules, Secrets: secrets}, confine)
}

// at are the tools of an agent in a session of the host "lab".
func (w *world) at(session string) *agenttools.Set {
	w.t.Helper()
	s := w.server.ToolsAt("lab", session, "")
	w.t.Cleanup(s.Close)
	return s
}

// call calls a tool and fails the test if it fails.
func call(t *testing.T, s *agenttools.Set, tool string, in args) string {
	t.Helper()
	raw := must.Get(json.Marshal(in))(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.Call(ctx, tool, raw, agenttools.Caller{})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, raw, err)
	}
	return must.Get(r.Text())(t)
}

// spawnAway starts a terminal and returns its id.
func (w *world) spawnAway(s *agenttools.Set, command ...string) (string, *testkit.Child) {
	w.t.Helper()
	var m meta
	must.Do(w.t, json.Unmarshal([]byte(call(w.t, s, "spawn_background_terminal", args{"cwd": testkit.Abs("/tmp"), "command": command})), &m))
	return m.ID, <-w.children
}

// A terminal that an agent at a host starts is lent there, belongs to the agent, and is
// redacted.
func TestToolsAtAHost(t *testing.T) {
	w := away(t)
	s := w.at("s1")
	id, child := w.spawnAway(s, "deploy", "--token", "ghp_"+strings.Repeat("a1B2", 9))
	info := w.info(id)
	if info.Owner != "agent lab/s1" || strings.Join(info.LentTo, ",") != "lab" || info.Visible {
		t.Errorf("it is %+v", info)
	}
	w.daemon.mu.Lock()
	asked := w.daemon.specs[0]
	w.daemon.mu.Unlock()
	if strings.Join(asked.LendTo, ",") != "lab" || !asked.ByAgent() || asked.Door != policy.DoorAHP {
		t.Errorf("the daemon was asked for %+v", asked)
	}
	if got := call(t, s, "list_terminals", nil); !strings.Contains(got, id) || strings.Contains(got, "a1B2a1B2") {
		t.Errorf("listed: %s", got)
	}
	child.Print("the token is " + secretValue + "\r\nready\r\n")
	got := call(t, s, "wait_terminal", args{"terminalId": id, "pattern": "ready", "timeoutMs": 60000})
	if !strings.Contains(got, `"reason":"pattern"`) || !strings.Contains(got, "the token is **") || strings.Contains(got, secretValue) {
		t.Errorf("waited: %s", got)
	}
	if got = call(t, s, "read_terminal", args{"terminalId": id, "format": "raw"}); !strings.Contains(got, "ready") || strings.Contains(got, secretValue) {
		t.Errorf("read: %s", got)
	}
	call(t, s, "kill_terminal", args{"terminalId": id})
	if !child.Killed() {
		t.Error("it was not killed")
	}
}

// Only terminals lent to its host exist for it, and it types nowhere.
func TestInvisibleTerminalsForAnAgentAtAHost(t *testing.T) {
	w := away(t)
	s := w.at("s1")
	id, child := w.spawnAway(s, "serve")
	persons, _ := w.spawn("shell")
	private := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true}))(t)
	<-w.children
	mine := w.agent("claude").spawn("x")
	<-w.children
	other, _ := w.spawnAway(w.at("s2"), "other")
	for what, hidden := range map[string]string{"the person's": persons.ID, "a private one": private.ID, "a local agent's": mine.ID, "another session's": other} {
		if got := call(t, s, "list_terminals", nil); strings.Contains(got, hidden) {
			t.Errorf("%s is listed: %s", what, got)
		}
		for _, tool := range []string{"read_terminal", "wait_terminal"} {
			if _, err := s.Call(t.Context(), tool, json.RawMessage(`{"terminalId":"`+hidden+`"}`), agenttools.Caller{}); err == nil || !strings.HasPrefix(err.Error(), "Terminal not found") {
				t.Errorf("%s of %s: %v", tool, what, err)
			}
		}
		call(t, s, "kill_terminal", args{"terminalId": hidden})
		if w.info(hidden).Exit != nil {
			t.Errorf("%s was killed", what)
		}
	}
	if _, err := s.Call(t.Context(), "write_terminal", json.RawMessage(`{"terminalId":"`+id+`","input":"x"}`), agenttools.Caller{}); err == nil || child.Typed() != "" {
		t.Errorf("typing: %v, typed %q", err, child.Typed())
	}
	if _, err := s.Call(t.Context(), "wait_terminal", json.RawMessage(`{"terminalId":"`+id+`","port":80}`), agenttools.Caller{}); err == nil {
		t.Error("it may try ports of this machine")
	}
	h := must.Get(w.pool.As(term.User).Find(id))(t)
	must.Do(t, h.Unlend("lab"))
	if got := call(t, s, "list_terminals", nil); got != "[]" {
		t.Errorf("after the person has withdrawn it: %s", got)
	}
	h = must.Get(w.pool.As(term.User).Find(persons.ID))(t)
	must.Do(t, h.Lend("lab"))
	if got := call(t, s, "list_terminals", nil); !strings.Contains(got, persons.ID) {
		t.Errorf("what the person lends there is not listed: %s", got)
	}
	if _, err := s.Call(t.Context(), "kill_terminal", json.RawMessage(`{"terminalId":"`+persons.ID+`"}`), agenttools.Caller{}); err == nil || w.info(persons.ID).Exit != nil {
		t.Errorf("kill of the person's: %v", err)
	}
}

// Out of the box the person is asked about every command.
func TestAnAgentAtAHostIsAskedAbout(t *testing.T) {
	c := config.Default().Policy
	c.AskTimeout = config.Duration(time.Hour)
	engine := must.Get(policy.New(policy.Options{Config: c}))(t)
	w := serve(t, local.Options{Policy: engine}, term.Options{})
	s := w.at("s1")
	run := json.RawMessage(rooted(`{"cwd":"/tmp","command":["npm","test"]}`))
	said := make(chan error, 1)
	go func() {
		_, err := s.Call(t.Context(), "spawn_background_terminal", run, agenttools.Caller{})
		said <- err
	}()
	var asked localapi.Approval
	testkit.Eventually(t, patience, "the person is asked", func() bool {
		all, err := w.client.Approvals(t.Context(), nil)
		if err != nil || len(all.Approvals) == 0 {
			return false
		}
		asked = all.Approvals[0]
		return true
	})
	if asked.Actor != "agent lab/s1" || asked.Door != policy.DoorAHP || strings.Join(asked.Argv, " ") != "npm test" {
		t.Errorf("asked about %+v", asked)
	}
	must.Get(w.client.Approve(t.Context(), asked.ID, false, 0))(t)
	var refused *policy.Refusal
	if err := <-said; !errors.As(err, &refused) || refused.Code != policy.CodeRejected {
		t.Errorf("after a no: %v", err)
	}
	if _, err := s.Call(t.Context(), "spawn_background_terminal", json.RawMessage(`{"cwd":"/tmp","command":["rm","x"]}`), agenttools.Caller{}); err == nil {
		t.Error("what is denied to all is allowed to it")
	}
}
