package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// printing returns an app and its output so far.
func printing(t *testing.T) (*app, func() string) {
	t.Helper()
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	t.Cleanup(func() { f.Close() })
	return newApp(nil, f, f), func() string {
		data := must.Get(os.ReadFile(f.Name()))(t)
		return string(data)
	}
}

func waiting(ids ...string) localapi.ApprovalList {
	var l localapi.ApprovalList
	for _, id := range ids {
		l.Approvals = append(l.Approvals, localapi.Approval{ID: id, State: localapi.ApprovalWaiting, Actor: "agent bob", Cwd: "/", Argv: []string{"run-" + id}})
	}
	return l
}

func TestPromptsOneByOne(t *testing.T) {
	a, printed := printing(t)
	w := approvalWatch{app: a, passed: map[string]bool{}}
	answer := func(line string) {
		t.Helper()
		check.OK(t, w.answer(t.Context(), line))
	}
	answer("y") // nothing is asked yet, so nobody is asked for an answer
	w.list(waiting("q-1", "q-2"))
	if got := printed(); !strings.Contains(got, "run-q-1") || strings.Contains(got, "run-q-2") || !strings.HasSuffix(got, "[l]ater: ") {
		t.Errorf("printed %q", got)
	}
	answer("maybe")
	if got := printed(); !strings.HasSuffix(got, "y, t, n or l: ") {
		t.Errorf("printed %q", got)
	}
	answer("l")
	if got := printed(); !strings.Contains(got, "run-q-2") {
		t.Errorf("printed %q", got)
	}
	w.list(waiting("q-1")) // q-2 is over, q-1 was left for later
	if got := printed(); !strings.HasSuffix(got, "\nq-2 was answered or has expired\n") || w.asked != "" {
		t.Errorf("printed %q, asks %q", got, w.asked)
	}
}

// Nothing of a command can hide: no line, no end, nothing that a terminal obeys or shows
// in another order.
func TestApprovalShowsAll(t *testing.T) {
	a, printed := printing(t)
	a.printApproval(localapi.Approval{ID: "q-1", State: localapi.ApprovalWaiting, Actor: "agent \x1b[2Jbob", Cwd: "/\u202e", Reason: "because", Rule: "r",
		Line: "echo harmless" + strings.Repeat(" ", 200) + "\nrm \x1b[1A\u202ex\r" + strings.Repeat("y", 20_000),
		Env:  []string{"LD_PRELOAD"}, Settings: []string{"LD_PRELOAD=/x\x1b.so"},
		Scripts: []localapi.Script{{Path: "/x/a\nb.sh", Sum: "0123456789abcdef", Size: 7}, {Path: "/x/secret.sh", Size: 8}}})
	got := printed()
	for _, want := range []string{"  | echo harmless", "\n  | rm ", "more bytes", "setting LD_PRELOAD=/x\uFFFD.so", "script /x/a b.sh, current content (7 bytes, sha256 0123456789ab…)",
		"script /x/secret.sh, unreadable (8 bytes)", "because (r)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for _, bad := range []string{"\x1b", "\u202e", "\r"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q has %q", got, bad)
		}
	}
}

func TestRecordText(t *testing.T) {
	for _, c := range []struct {
		r    policy.Record
		want string
	}{
		{policy.Record{Event: "stop"}, ""},
		{policy.Record{Event: "kill", Actor: "agent:bob", Terminal: "pty-1", Detail: "the terminal was idle"}, "agent:bob  pty-1  the terminal was idle"},
		{policy.Record{Event: "lost", Count: 7}, "7 events were not written"},
		{policy.Record{Event: "spawn", Actor: "user", Argv: []string{"a b", "\x1b[2J"}, Cwd: "/x\n"}, "user  $ 'a b' '\uFFFD[2J'  in /x "},
		{policy.Record{Event: "decision", Line: "a\nb", Effect: "deny", Rule: "r", Reason: "why"}, "deny  $ a b  by rule r  why"},
	} {
		if got := recordText(c.r); got != c.want {
			t.Errorf("%+v\ngave %q\nwant %q", c.r, got, c.want)
		}
	}
}

// Records that are added to a log are printed while it is followed.
func TestAuditFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	e := must.Get(policy.New(policy.Options{AuditPath: path}))(t)
	defer e.Close()
	e.Audit(policy.Event{Type: policy.EventKill, Detail: "one"})
	e.Audit(policy.Event{Type: policy.EventKill, Detail: "two"})
	a, printed := printing(t)
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	go func() { done <- a.audit(ctx, path, auditFlags{follow: true, last: 1}) }()
	for strings.Count(printed(), "kill") < 1 && ctx.Err() == nil {
		<-time.After(5 * time.Millisecond)
	}
	e.Audit(policy.Event{Type: policy.EventKill, Detail: "three"})
	for !strings.Contains(printed(), "three") && ctx.Err() == nil {
		<-time.After(5 * time.Millisecond)
	}
	cancel()
	check.OK(t, <-done)
	if got := printed(); strings.Contains(got, "one") || strings.Count(got, "two") != 1 || strings.Count(got, "three") != 1 {
		t.Errorf("printed %q", got)
	}
}
