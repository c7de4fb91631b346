package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/audit"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

func TestTrailOfASpawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, policy.Options{}), pool(t)
		r := harmless()
		r.Env = []string{"CI=1"}
		h := must.Get(spawn(t.Context(), e, p, r))(t)
		r.Argv = []string{"rm", "x"}
		if _, err := spawn(t.Context(), e, p, r); err == nil {
			t.Fatal("rm passed")
		}
		got := e.Recent()
		for i := range got {
			if got[i].Time != time.Now().UTC() {
				t.Errorf("record %d is of %s", i, got[i].Time)
			}
			got[i].Time = time.Time{}
		}
		common := policy.Record{Actor: "agent:a", Door: "mcp", Argv: []string{"npm", "run", "dev"}, Cwd: "/home/p/src", EnvNames: []string{"CI"},
			Effect: "allow", Rule: "default", Reason: "no rule matches"}
		decision, spawned, refused := common, common, common
		decision.Event = policy.EventDecision
		spawned.Event, spawned.Terminal = policy.EventSpawn, string(h.ID())
		refused.Event, refused.Argv, refused.Effect, refused.Rule = policy.EventDecision, []string{"rm", "x"}, "deny", "builtin.commands"
		refused.Reason, refused.Detail = policy.Blocked, "blocked"
		if d := cmp.Diff([]policy.Record{decision, spawned, refused}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// No credential of a known form, and nothing that is named as one, gets into the log. The
// values here are made up.
func TestRedaction(t *testing.T) {
	const canary = "Zq7canaryZq7canaryZq7canary1234567890abc"
	for _, c := range []struct {
		argv []string
		want []string // nil: only that the canary is gone
	}{
		{[]string{"curl", "-H", "Authorization: Bearer " + canary, "https://h/x"}, nil},
		{[]string{"curl", "-H", "X-Api-Key: " + canary}, nil},
		{[]string{"curl", "-H", "Cookie: session=" + canary + "; b=" + canary}, nil},
		{[]string{"git", "clone", "https://bob:" + canary + "@h/r.git"}, []string{"git", "clone", "https://bob:[hidden]@h/r.git"}},
		{[]string{"git", "clone", "https://:" + canary + "@h/r.git"}, nil},
		{[]string{"x", "--password=" + canary}, []string{"x", "--password=[hidden]"}},
		{[]string{"x", "--password", canary, "y"}, []string{"x", "--password", "[hidden]", "y"}},
		{[]string{"x", "--token", canary}, nil},
		{[]string{"env", "DB_PASSWORD=" + canary, "npm", "test"}, []string{"env", "DB_PASSWORD=[hidden]", "npm", "test"}},
		{[]string{"sh", "-c", "API_TOKEN='" + canary + "' npm test"}, nil},
		{[]string{"sh", "-c", `export SECRET_KEY="` + canary + `"; x`}, nil},
		{[]string{"sh", "-c", "x --api-key " + canary + " --y"}, nil},
		{[]string{"x", "ghp_" + canary}, []string{"x", "[hidden]"}},
		{[]string{"x", "sk-" + canary}, nil},
		{[]string{"x", "xoxb-" + canary}, nil},
		{[]string{"x", "glpat-" + canary}, nil},
		{[]string{"x", "eyJ" + canary + "." + canary + "." + canary}, nil},
		{[]string{"x", "-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----"}, nil},
		{[]string{"x", "-----BEGIN PRIVATE KEY-----\n" + canary}, nil},
		{[]string{"npm", "run", "dev", "--port=3000"}, []string{"npm", "run", "dev", "--port=3000"}},
		{[]string{"grep", "token", "src"}, []string{"grep", "token", "src"}},
		{[]string{"x", "--token-file", "t", "https://h:8080/a@b"}, []string{"x", "--token-file", "[hidden]", "https://h:8080/a@b"}},
	} {
		e := engine(t, policy.Options{})
		e.Audit(policy.Event{Type: policy.EventSpawn, Argv: c.argv, Line: strings.Join(c.argv, " "), Detail: strings.Join(c.argv, " "),
			Decision: policy.Decision{Effect: policy.Allow, Rule: "r", Reason: strings.Join(c.argv, " ")}})
		r := e.Recent()[0]
		text := must.Get(json.Marshal(r))(t)
		if strings.Contains(string(text), "canary") {
			t.Errorf("%q is logged as %s", c.argv, text)
		}
		if c.want != nil && !cmp.Equal(c.want, r.Argv) {
			t.Errorf("%q is logged as %q, want %q", c.argv, r.Argv, c.want)
		}
	}
}

func TestRecordsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := settings(nil)
	o.AuditPath = path
	e := engine(t, o)
	long := strings.Repeat("é\x00\u2028", 100_000)
	words := make([]string, 5000)
	for i := range words {
		words[i] = long[:i%100]
	}
	e.Audit(policy.Event{Type: policy.EventSpawn, Argv: words, EnvNames: words, Line: long, Cwd: long, Detail: long, Decision: policy.Decision{Reason: long}})
	worst := strings.Repeat("\x01", 100_000) // six bytes each in JSON
	e.Audit(policy.Event{Type: policy.EventSpawn, Argv: []string{worst}, EnvNames: []string{worst}, Line: worst, Cwd: worst, Detail: worst, Decision: policy.Decision{Reason: worst}})
	if text := e.Degraded(); text != "" {
		t.Fatal(text)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 300<<10 {
		t.Errorf("the records have %v, %v", info.Size(), err)
	}
	if r, err := audit.Verify(path, nil); err != nil || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Nor does an agent that signals all the time, or starts commands that cannot start.
func TestFloodOfSignalsAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		for range 500 {
			e.Audit(policy.Event{Type: policy.EventSignal, Actor: agent, Detail: "SIGINT"})
		}
		if n := len(e.Recent()); n != 60 {
			t.Errorf("%d records of 500 signals, want 60", n)
		}
		refused := 0
		for range 500 {
			_, err := e.Spawn(t.Context(), harmless(), func() (term.Handle, error) { return term.Handle{}, errors.New("no such program") })
			if codeOf(err) == "rate_limited" {
				refused++
			}
		}
		if n := len(e.Recent()); n != 60+2*120+60 || refused != 380 {
			t.Errorf("%d records, %d refused; want 120 failures with their decisions, and 60 refusals", n, refused)
		}
		time.Sleep(time.Minute)
		if _, err := spawn(t.Context(), e, pool(t), harmless()); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// An agent that is refused all the time does not fill the log, nor does it keep other
// events from being written.
func TestFloodOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		bad := harmless()
		bad.Argv = []string{"rm", "x"}
		refuse := func(a term.Actor, times int) {
			r := bad
			r.Actor = a
			for range times {
				if _, err := e.Admit(t.Context(), r); codeOf(err) != "blocked" {
					t.Fatal(err)
				}
			}
		}
		refuse(agent, 500)
		refuse(term.Agent("b"), 10)
		if n := len(e.Recent()); n != 70 {
			t.Errorf("%d records, want 60 and 10", n)
		}
		time.Sleep(time.Minute)
		refuse(agent, 1)
		all := e.Recent()
		if last := all[len(all)-1]; !strings.Contains(last.Detail, "440 more refusals before this one") {
			t.Errorf("the record after the flood says %q", last.Detail)
		}
		if _, err := e.Admit(t.Context(), harmless()); err != nil {
			t.Error(err)
		}
		if got := trail(e); got[len(got)-1] != "decision allow default" {
			t.Errorf("the last event is %q", got[len(got)-1])
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	e := engine(t, policy.Options{})
	for i := range 2500 {
		e.Audit(policy.Event{Type: policy.EventKill, Detail: fmt.Sprint(i)})
	}
	if all := e.Recent(); len(all) != 1000 || all[999].Detail != "2499" {
		t.Errorf("%d events, the last is %q", len(all), all[len(all)-1].Detail)
	}
}

// A disk that takes nothing stops nothing.
func TestDegraded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	o := settings(nil)
	o.AuditPath = filepath.Join(dir, "audit.jsonl")
	e := engine(t, o)
	if text := e.Degraded(); text != "" {
		t.Errorf("before anything was written: %q", text)
	}
	must.Get(e.Admit(t.Context(), harmless()))(t)
	if text := e.Degraded(); !strings.Contains(text, "cannot be written; 1 events are lost") {
		t.Errorf("degraded: %q", text)
	}
	if h := e.AuditHead(); h.N != 0 {
		t.Errorf("head %+v", h)
	}
}

func TestAuditFile(t *testing.T) {
	o := settings(nil)
	o.AuditPath = filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 { // two daemons, one after the other
		e := engine(t, o)
		must.Get(e.Admit(t.Context(), harmless()))(t)
		must.Do(t, e.Close())
	}
	report, err := audit.Verify(o.AuditPath, nil)
	if err != nil || len(report.Problems) > 0 || report.Records != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	for r, err := range audit.Read(o.AuditPath) {
		var rec policy.Record
		if err != nil || json.Unmarshal(r.Fields, &rec) != nil || rec.Event != policy.EventDecision || rec.Actor != "agent:a" {
			t.Errorf("%s, %v", r.Fields, err)
		}
	}
}
