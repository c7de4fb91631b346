package main

import (
	"testing"

	"tether/agent/acp"
	"tether/agent/localapi"
	"tether/agent/policy"
)

// Two commands that set different variables are two questions: an answer to one does not
// answer the other.
func TestQuestionsOfAnEditorDifferByVariables(t *testing.T) {
	a := &agentTerminals{name: "bob"}
	q := localapi.Approval{State: localapi.ApprovalWaiting, Actor: "agent bob", Door: policy.DoorACP, Argv: []string{"make"}, Cwd: "/x", Env: []string{"LD_PRELOAD"}}
	c := acp.Command{Argv: []string{"make"}, Cwd: "/x"}
	if a.isAbout(q, c) {
		t.Error("a question about a command that sets LD_PRELOAD is taken for one about another")
	}
	c.Env = []string{"LD_PRELOAD=/tmp/x=y.so"}
	if !a.isAbout(q, c) {
		t.Error("its own question is not found")
	}
	if q.Env, c.Env = nil, []string{}; !a.isAbout(q, c) {
		t.Error("without variables it is not found")
	}
}
