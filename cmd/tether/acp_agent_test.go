package main

import (
	"io"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// An agent that a script starts does not get the way to the person's token.
func TestAgentsGetNoToken(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	t.Setenv(tokenVar, "the-persons")
	t.Setenv("STAYS", "1")
	p := must.Get(startAgent("bob", []string{"env"}, false, io.Discard))(t)
	out, err := io.ReadAll(p.stdout)
	<-p.exited
	if env := string(out); err != nil || !strings.Contains(env, "STAYS=1") || strings.Contains(env, "the-persons") {
		t.Errorf("%v: its environment is\n%s", err, env)
	}
}
