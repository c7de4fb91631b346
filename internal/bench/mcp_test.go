package main

import (
	"errors"
	"testing"
)

// fakeDoor answers at once.
type fakeDoor struct {
	is    string
	calls int
	err   error
}

func (d *fakeDoor) name() string { return d.is }
func (d *fakeDoor) close()       {}
func (d *fakeDoor) call(string) (int, error) {
	d.calls++
	return 1, d.err
}

func TestMeasureCalls(t *testing.T) {
	a, b := &fakeDoor{is: "stdio"}, &fakeDoor{is: "HTTP"}
	rows, err := measureCalls([]mcpDoor{a, b}, []mcpCall{{"list", "x"}, {"read", "y"}}, 50)
	if err != nil {
		t.Fatal(err)
	}
	if a.calls != 120 || b.calls != 120 {
		t.Errorf("%d and %d calls", a.calls, b.calls)
	}
	if len(rows)%4 != 0 || rows[0].Part != "mcp" || rows[0].Value < 0 {
		t.Errorf("rows %+v", rows)
	}
	b.err = errors.New("gone")
	if rows, err := measureCalls([]mcpDoor{a, b}, []mcpCall{{"list", "x"}}, 1); err == nil {
		t.Errorf("a door that fails was measured: %+v", rows)
	}
}
