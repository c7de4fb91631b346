package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/sandbox"
	"tether/platform/secret"
)

// A changed [identity] is a question, and has no effect before it is approved. What was
// approved is kept for the next daemon, and removing it is a change, too.
func TestIdentityIsApproved(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	dirs := home(t)
	file := filepath.Join(dirs.State, "identity.json")
	steps := []struct {
		name         string
		mine, agents []string
		answer       string // allow, deny; "" if nothing is asked
		kept         string // a part of the file afterwards; "" if there is none
	}{
		{"nothing", nil, nil, "", ""},
		{"denied", []string{"mytool"}, nil, "deny", ""},
		{"approved", []string{"mytool"}, []string{"ouragent"}, "allow", `"mine":["mytool"],"agents":["ouragent"]`},
		{"the same", []string{"mytool"}, []string{"ouragent"}, "", `"mytool"`},
		{"one more, denied", []string{"mytool", "claude"}, []string{"ouragent"}, "deny", `"mine":["mytool"],`},
		{"removed", nil, nil, "allow", `"mine":[],"agents":[]`},
	}
	for _, s := range steps {
		c := config.Default()
		c.Identity = config.Identity{Mine: append([]string{}, s.mine...), Agents: append([]string{}, s.agents...)}
		d := start(t, agent.Config{Dirs: dirs, Settings: &c})
		ctx := t.Context()
		asked := func() []localapi.Approval {
			l, err := d.client.Approvals(ctx, nil)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			return l.Approvals
		}
		if s.answer == "" {
			if all := asked(); len(all) > 0 {
				t.Errorf("%s: it asks %+v", s.name, all)
			}
		} else {
			testkit.Eventually(t, patience, s.name+": the question", func() bool { return len(asked()) == 1 })
			q := asked()[0]
			if !q.Setting || q.Rule != "identity" || q.Line != c.Identity.String() || !strings.Contains(q.Summary, "configuration has changed: [identity] mine = [") {
				t.Errorf("%s: it asks %+v", s.name, q)
			}
			d.status(s.name+": it waits", func(st localapi.Status) bool { return len(st.Degraded) == 1 && st.Degraded[0].Cause == "identity" })
			if _, err := d.client.As("bob").Approve(ctx, q.ID, true, 0); err == nil {
				t.Errorf("%s: an agent has approved it", s.name)
			}
			if _, err := d.client.Approve(ctx, q.ID, s.answer == "allow", 0); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
			d.status(s.name+": it is answered", func(st localapi.Status) bool { return len(st.Degraded) == 0 })
		}
		d.end()
		text, err := os.ReadFile(file)
		if err == nil != (s.kept != "") || !strings.Contains(strings.Join(strings.Fields(string(text)), ""), s.kept) {
			t.Errorf("%s: the file has %s, %v; want %s", s.name, text, err, s.kept)
		}
	}
}

// A file that somebody has damaged approves nothing.
func TestDamagedIdentity(t *testing.T) {
	dirs := home(t)
	c := config.Default()
	c.Identity.Mine = []string{"mytool"}
	must.Do(t, secret.Dir(dirs.State))
	for _, text := range []string{"", "{", `{"version":2,"mine":["mytool"],"agents":[]}`, strings.Repeat(" ", 5<<20)} {
		must.Do(t, os.WriteFile(filepath.Join(dirs.State, "identity.json"), []byte(text), 0o600))
		d := start(t, agent.Config{Dirs: dirs, Settings: &c})
		testkit.Eventually(t, patience, "the question", func() bool {
			l, err := d.client.Approvals(t.Context(), nil)
			return err == nil && len(l.Approvals) == 1
		})
		d.end()
	}
}

// An agent behind a wall can write neither the configuration nor its approved part, even
// where a directory around them is granted.
func TestWallKeepsIdentity(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	self := must.Get(os.Executable())(t)
	if _, err := sandbox.Best(self); err != nil {
		t.Skip(err)
	}
	dirs, in := home(t), outside(t)
	c := config.Default()
	c.Policy.Builtin.Files = "allow"
	c.Policy.Principals = []config.PolicyIdentity{{Name: "agent:boxed", Sandbox: "auto", Roots: []string{in}, Writable: []string{filepath.Dir(dirs.Config)}}}
	d := start(t, agent.Config{Dirs: dirs, Settings: &c})
	for _, file := range []string{filepath.Join(dirs.Config, "config.toml"), filepath.Join(dirs.State, "identity.json")} {
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		tm, err := d.client.As("boxed").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-c", "echo x > " + file + "; mv " + filepath.Dir(file) + " " + in}, Cwd: in})
		must.Do(t, err)
		testkit.Eventually(t, patience, "its end", func() bool {
			tm, err = d.client.Find(t.Context(), tm.ID)
			return err == nil && tm.Exit != nil
		})
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			t.Errorf("%s was moved: %v", filepath.Dir(file), err)
		}
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "x\n") {
			t.Errorf("%s was written: %q", file, text)
		}
	}
}
