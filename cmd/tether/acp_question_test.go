package main

import (
	"testing"

	"tether/agent/acp"
	"tether/agent/localapi"
	"tether/agent/policy"
)

// A question about a command whose bytes are not UTF-8 is not the one about a command of
// the letters with which they are shown.
func TestQuestionIsAbout(t *testing.T) {
	a := &agentTerminals{name: "bob"}
	c := acp.Command{Argv: []string{"rm", `$'a\xe9'`}, Cwd: "/p"}
	q := localapi.Approval{State: localapi.ApprovalWaiting, Actor: "agent bob", Door: policy.DoorACP, Argv: c.Argv, Cwd: c.Cwd}
	if !a.isAbout(q, c) {
		t.Error("it is about the same command")
	}
	if q.ArgvBytes = map[int][]byte{1: []byte("a\xe9")}; a.isAbout(q, c) {
		t.Error("other arguments are shown alike")
	}
	if q.ArgvBytes, q.CwdBytes = nil, []byte("/p\xe9"); a.isAbout(q, c) {
		t.Error("another directory is shown alike")
	}
}
