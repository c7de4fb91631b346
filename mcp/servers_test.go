package mcp_test

import (
	"errors"
	"testing"

	"tether/internal/testkit/must"
	"tether/mcp"
)

func TestServers(t *testing.T) {
	s := mcp.Servers{Max: 2}
	t.Cleanup(s.Close)
	of := func(principal string) (*mcp.Server, error) {
		return s.Of(principal, func() *mcp.Server { return newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}) })
	}
	one := must.Get(of("one"))(t)
	if again, err := of("one"); err != nil || again != one {
		t.Errorf("one has another server the second time, %v", err)
	}
	two, err := of("two")
	if err != nil || two == one {
		t.Fatalf("two has one's server, %v", err)
	}
	connect(t, two, nil)
	three, err := of("three")
	if err != nil {
		t.Fatalf("one, who has no session, was not forgotten: %v", err)
	}
	if again, err := of("two"); err != nil || again != two {
		t.Errorf("two, who has a session, was forgotten, %v", err)
	}
	connect(t, three, nil)
	if _, err := of("four"); !errors.Is(err, mcp.ErrTooManyAgents) {
		t.Errorf("a third agent beside two that have sessions: %v", err)
	}
	s.Close()
	if _, err := of("two"); !errors.Is(err, mcp.ErrServersClosed) {
		t.Errorf("after Close: %v", err)
	}
}
