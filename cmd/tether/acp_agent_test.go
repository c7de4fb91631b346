package main

import (
	"io"
	"strings"
	"testing"

	"tether/internal/testkit"
)

// An agent that a script starts does not get the way to the person's token.
func TestAgentsGetNoToken(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	t.Setenv(tokenVar, "the-persons")
	t.Setenv("STAYS", "1")
	p, err := startAgent("bob", []string{"env"}, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.stdout)
	<-p.exited
	if env := string(out); err != nil || !strings.Contains(env, "STAYS=1") || strings.Contains(env, "the-persons") {
		t.Errorf("%v: its environment is\n%s", err, env)
	}
}
