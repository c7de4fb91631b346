package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent"
	"tether/agent/audit"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/sandbox"
	"tether/platform/secret"
)

// events is the log so far, as short texts.
func events(t *testing.T, d dirs.Dirs) []string {
	t.Helper()
	var all []string
	for r, err := range audit.Read(agent.AuditPath(d)) {
		var ev policy.Record
		if err == nil {
			err = json.Unmarshal(r.Fields, &ev)
		}
		must.Do(t, err)
		words := []string{string(ev.Event), ev.Actor, ev.Effect, ev.Host}
		all = append(all, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
	}
	return all
}

func TestAuditOfADay(t *testing.T) {
	dirs := home(t)
	d := start(t, agent.Config{Dirs: dirs})
	url := startHost(t, "")
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{Name: "h", URL: url}))(t)
	d.status("it is online", func(s localapi.Status) bool { return s.Hosts[0].State == "online" })
	sleep := localapi.SpawnRequest{Command: testkit.Sleep(), Cwd: testkit.Abs("/"), Env: append(os.Environ(), "SECRET=canary")}
	lent := must.Get(d.client.Spawn(t.Context(), sleep))(t)
	bob := d.client.As("bob")
	own := must.Get(bob.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Cwd: testkit.Abs("/")}))(t)
	if _, err := bob.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"rm", "x"}, Cwd: testkit.Abs("/")}); err == nil {
		t.Error("rm was run")
	}
	if _, err := bob.Kill(t.Context(), lent.ID); err == nil {
		t.Error("bob has killed the person's terminal")
	}
	if _, err := bob.Kill(t.Context(), own.ID); err != nil {
		t.Error(err)
	}
	if _, err := bob.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"no-such-program"}, Cwd: testkit.Abs("/")}); err == nil {
		t.Error("what is not there was run")
	}
	if _, err := d.client.Unpair(t.Context(), "h"); err != nil {
		t.Error(err)
	}
	head, err := d.client.AuditHead(t.Context())
	if err != nil || head.N == 0 {
		t.Errorf("head %+v, %v", head, err)
	}
	if _, err := d.client.Kill(t.Context(), lent.ID); err != nil {
		t.Error(err)
	}
	d.end()
	got := events(t, dirs)
	if n := slices.Index(got, "connect h"); n < 1 || slices.Contains(got[n+1:], "connect h") {
		t.Errorf("that the host was reached is to be written once:\n%s", strings.Join(got, "\n"))
	}
	want := []string{"start", "pair user h", "spawn user allow h",
		"decision agent:bob allow", "spawn agent:bob allow h", "decision agent:bob deny", "refusal agent:bob", "kill agent:bob",
		"decision agent:bob allow", "failed agent:bob allow", "unpair user h", "kill user", "stop"}
	exits := len(got)
	got = slices.DeleteFunc(got, func(s string) bool { return s == "exit" }) // just before the kill has returned, or just after
	if exits -= len(got); exits != 2 {
		t.Errorf("%d exits are written, want 2", exits)
	}
	got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "unlend") || s == "connect h" }) // when the link comes to it
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +log:\n%s", d)
	}
	r, err := audit.Verify(agent.AuditPath(dirs), nil)
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	text, err := os.ReadFile(agent.AuditPath(dirs))
	if err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("the log has the value of a variable, or cannot be read: %v", err)
	}
}

// A start shows whether the rules are the same as before, even if their number is.
func TestAuditOfRules(t *testing.T) {
	dirs := home(t)
	for _, change := range []func(*config.Config){
		func(*config.Config) {},
		func(*config.Config) {},
		func(c *config.Config) { c.Policy.Rules[0].Effect = "allow" },
		func(c *config.Config) { c.Lend.Clipboard = true },
		func(c *config.Config) { c.MCP.IdleTimeout++ },
	} {
		c := config.Default()
		c.Policy.Rules = []config.PolicyRule{{Name: "canary", Effect: "deny", Argv: []string{"canary"}}}
		change(&c)
		start(t, agent.Config{Dirs: dirs, Settings: &c}).end()
	}
	var sums []string
	for r, err := range audit.Read(agent.AuditPath(dirs)) {
		var ev policy.Record
		if err == nil {
			err = json.Unmarshal(r.Fields, &ev)
		}
		if err != nil || strings.Contains(ev.Detail, "canary") {
			t.Fatalf("%+v, %v", ev, err)
		}
		if _, sum, ok := strings.Cut(ev.Detail, "sum of policy and lend "); ok {
			sums = append(sums, sum)
		}
	}
	if len(sums) != 5 || sums[0] != sums[1] || sums[0] == sums[2] || sums[0] == sums[3] || sums[2] == sums[3] || sums[4] != sums[0] || len(sums[0]) != 16 {
		t.Errorf("sums %q", sums)
	}
}

// Lending by hand and withdrawing are in the log, with the actor.
func TestAuditOfLending(t *testing.T) {
	dirs := home(t)
	d := start(t, agent.Config{Dirs: dirs})
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{Name: "h", URL: startHost(t, "")}))(t)
	tm := must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Cwd: testkit.Abs("/"), Env: os.Environ(), LendTo: []string{"h"}}))(t)
	must.Get(d.client.Unlend(t.Context(), tm.ID, ""))(t)
	must.Get(d.client.Lend(t.Context(), tm.ID, localapi.LendRequest{}))(t)
	if _, err := d.client.As("bob").Unlend(t.Context(), tm.ID, ""); err == nil {
		t.Error("an agent has withdrawn it")
	}
	must.Get(d.client.Unlend(t.Context(), tm.ID, ""))(t)
	d.end()
	got := slices.DeleteFunc(events(t, dirs), func(s string) bool { return !strings.Contains(s, "lend") && !strings.HasPrefix(s, "refusal") })
	if d := cmp.Diff([]string{"unlend user h", "lend user h", "refusal agent:bob", "unlend user h"}, got); d != "" {
		t.Errorf("-want +log:\n%s", d)
	}
}

// Creation and removal of a token are in the log, and no token is.
func TestAuditOfTokens(t *testing.T) {
	dirs := home(t)
	d := start(t, agent.Config{Dirs: dirs})
	ctx := t.Context()
	made := must.Get(d.client.CreateToken(ctx, "cursor"))(t)
	if _, err := d.client.CreateToken(ctx, "cursor"); err == nil {
		t.Error("an agent was given two tokens")
	}
	if _, err := d.client.As("bob").CreateToken(ctx, "bob"); err == nil {
		t.Error("an agent has made itself a token")
	}
	own := must.Get(d.client.UserToken(ctx))(t)
	again, err := d.client.UserToken(ctx)
	if err != nil || again.Token != own.Token {
		t.Errorf("the person's token has changed: %v", err)
	}
	for _, principal := range []string{"user", "cursor"} {
		check.OK(t, d.client.RevokeToken(ctx, principal))
	}
	if err := d.client.RevokeToken(ctx, "cursor"); err == nil {
		t.Error("a token was revoked twice")
	}
	if again, err = d.client.UserToken(ctx); err != nil || again.Token == own.Token {
		t.Errorf("the person's token was not renewed: %v", err)
	}
	d.end()
	var got []string
	for r, err := range audit.Read(agent.AuditPath(dirs)) {
		var ev policy.Record
		if err == nil {
			err = json.Unmarshal(r.Fields, &ev)
		}
		must.Do(t, err)
		if ev.Event == policy.EventToken {
			got = append(got, ev.Actor+" "+ev.Detail)
		}
	}
	want := []string{"user made for cursor", "user made for user", "user renewed for user", "user revoked for cursor"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +log:\n%s", d)
	}
	text := must.Get(os.ReadFile(agent.AuditPath(dirs)))(t)
	for _, token := range []string{made.Token, own.Token, again.Token} {
		if strings.Contains(string(text), strings.TrimPrefix(token, "tether_")) {
			t.Error("the log has a token")
		}
	}
}

// The log of one daemon goes on in the next.
func TestAuditGoesOn(t *testing.T) {
	dirs := home(t)
	for range 3 {
		start(t, agent.Config{Dirs: dirs}).end()
	}
	if d := cmp.Diff([]string{"start", "stop", "start", "stop", "start", "stop"}, events(t, dirs)); d != "" {
		t.Errorf("-want +log:\n%s", d)
	}
}

// Without a log terminals can still be started, and status reports the fault.
func TestAuditWithoutDisk(t *testing.T) {
	dirs := home(t)
	if err := secret.Dir(agent.AuditPath(dirs)); err != nil { // a directory is in the way
		t.Fatal(err)
	}
	d := start(t, agent.Config{Dirs: dirs})
	must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Cwd: testkit.Abs("/")}))(t)
	d.status("degraded", func(s localapi.Status) bool {
		return slices.ContainsFunc(s.Degraded, func(x localapi.Degraded) bool {
			return x.Cause == "audit log" && strings.Contains(x.Text, "events are lost")
		})
	})
	must.Do(t, os.Remove(agent.AuditPath(dirs)))
	testkit.Eventually(t, patience, "a log again", func() bool {
		_, err := d.client.As("bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"rm"}, Cwd: testkit.Abs("/")})
		s, statusErr := d.client.Status(t.Context())
		return err != nil && statusErr == nil && !slices.ContainsFunc(s.Degraded, func(x localapi.Degraded) bool { return x.Cause == "audit log" })
	})
	if got := events(t, dirs); len(got) < 2 || got[0] != "lost" {
		t.Errorf("the log is %q", got)
	}
}

func TestWrongPolicyDoesNotStart(t *testing.T) {
	c := config.Default()
	c.Policy.Rules = []config.PolicyRule{{Name: "x", Effect: "allow", Argv: []string{"ls"}, Match: []string{"sl"}}}
	_, err := agent.New(agent.Config{Dirs: home(t), Settings: &c})
	if err == nil || !strings.Contains(err.Error(), `match: the rule does not match "sl"`) {
		t.Errorf("error %v", err)
	}
}

// An agent's commands have the configured limits, and the person's have none. A missing
// program is still reported as missing.
func TestLimitsOfAnAgent(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	c := config.Default()
	c.Policy.Limits.CPUTime, c.Policy.Limits.Processes = config.Duration(7*time.Second), 0
	c.Policy.Limits.CommandTime = config.Duration(time.Second)
	daemon := start(t, agent.Config{Dirs: home(t), Settings: &c})
	run := func(client *localclient.Client, door string, command ...string) localapi.Terminal {
		tm, err := client.Spawn(t.Context(), localapi.SpawnRequest{Command: command, Cwd: outside(t), Door: door})
		must.Do(t, err)
		testkit.Eventually(t, patience, "its end", func() bool {
			tm, err = daemon.client.Find(t.Context(), tm.ID)
			return err == nil && tm.Exit != nil
		})
		return tm
	}
	limited := []string{"sh", "-c", "ulimit -t | grep -qx 7"}
	if tm := run(daemon.client.As("bob"), "", limited...); tm.Exit.Code != 0 || !slices.Equal(tm.Command, limited) {
		t.Errorf("the agent's processes have no limit: %+v", tm)
	}
	if tm := run(daemon.client, "", limited...); tm.Exit.Code == 0 {
		t.Error("the person's processes have one, too")
	}
	if tm := run(daemon.client.As("bob"), "acp", "sleep", "600"); tm.Exit.Signal == "" {
		t.Errorf("a command that ran too long ended with %+v", tm.Exit)
	}
	var e *localapi.Error
	if _, err := daemon.client.As("bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"no-such-program"}, Cwd: outside(t)}); !errors.As(err, &e) || e.Code != localapi.CodeCannotStart {
		t.Errorf("a program that is not there: %v", err)
	}
}

// Commands of an agent with a sandbox cannot write elsewhere, and the person's can.
// Without a sandbox the agent runs nothing.
func TestSandboxOfAPrincipal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	d := home(t)
	c := config.Default()
	c.Policy.Builtin.Files, c.Policy.Limits.SpawnsPerMinute = "allow", 100
	base := outside(t)
	in, out := filepath.Join(base, "in"), filepath.Join(base, "out")
	for _, dir := range []string{in, out} {
		must.Do(t, os.Mkdir(dir, 0o700))
	}
	c.Policy.Principals = []config.PolicyIdentity{{Name: "agent:boxed", Sandbox: "auto", Roots: []string{"/"}}, {Name: "agent:rootless", Sandbox: "auto"},
		{Name: "agent:writer", Sandbox: "auto", Writable: []string{in}}, {Name: "agent:free", Sandbox: "none"},
		{Name: "agent:linker", Sandbox: "auto", Roots: []string{in}, Writable: []string{filepath.Join(in, "link")}}}
	must.Do(t, os.Symlink(out, filepath.Join(in, "link")))
	daemon := start(t, agent.Config{Dirs: d, Settings: &c})
	run := func(client *localclient.Client, cwd string) (int, error) {
		tm, err := client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-c", "echo x > ../out/file"}, Cwd: cwd})
		if err != nil {
			return 0, err
		}
		testkit.Eventually(t, patience, "its end", func() bool {
			tm, err = daemon.client.Find(t.Context(), tm.ID)
			return err == nil && tm.Exit != nil
		})
		if !slices.Equal(tm.Command[:2], []string{"sh", "-c"}) {
			t.Errorf("the terminal shows %q", tm.Command)
		}
		return tm.Exit.Code, nil
	}
	self := must.Get(os.Executable())(t)
	if _, err := sandbox.Best(self); errors.Is(err, sandbox.ErrUnsupported) {
		var e *localapi.Error
		if _, err := run(daemon.client.As("boxed"), in); !errors.As(err, &e) || e.Code != localapi.CodeCannotStart {
			t.Errorf("without a sandbox: %v", err)
		}
		t.Skipf("%s: %v", runtime.GOOS, err)
	}
	if code, err := run(daemon.client.As("boxed"), in); err != nil || code == 0 {
		t.Errorf("boxed: status %d, %v; want that it is refused", code, err)
	}
	if _, err := os.Stat(filepath.Join(out, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it has written outside: %v", err)
	}
	for name, client := range map[string]*localclient.Client{"free": daemon.client.As("free"), "the person": daemon.client} {
		if code, err := run(client, in); err != nil || code != 0 {
			t.Errorf("%s: status %d, %v", name, code, err)
		}
	}
	// Without roots the agent may not choose the directory, unless it may change it
	// anyway.
	for name, wants := range map[string]string{"rootless": "the configuration of agent rootless has no roots", "writer": out + " is not in its roots"} {
		if code, err := run(daemon.client.As(name), out); err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("%s: status %d, %v; want %q", name, code, err, wants)
		}
	}
	if _, err := run(daemon.client.As("writer"), in); err != nil {
		t.Errorf("in a directory that it may change anyway: %v", err)
	}
	// It may have put the link there itself.
	if code, err := run(daemon.client.As("linker"), in); err == nil || !strings.Contains(err.Error(), "link cannot be granted") {
		t.Errorf("linker: status %d, %v", code, err)
	}
	for _, wide := range []string{"/", d.Config, filepath.Dir(d.Config)} {
		must.Do(t, os.MkdirAll(wide, 0o700))
		if _, err := run(daemon.client.As("boxed"), wide); err == nil || !strings.Contains(err.Error(), "would be writable from") {
			t.Errorf("in %s: %v", wide, err)
		}
	}
}

// outside makes a directory that is not among those for temporary files, which every
// sandbox lets programs write.
func outside(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp(".", "outside"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	abs := must.Get(filepath.Abs(dir))(t)
	for _, open := range sandbox.Temporary() {
		if strings.HasPrefix(abs, open+"/") {
			t.Skipf("%s, where the test runs, is a place for temporary files", abs)
		}
	}
	return abs
}
