package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"tether/internal/testkit"
)

// TestACPRows measures an agent against itself: a proxy then adds nearly nothing.
func TestACPRows(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	r := &rig{env: os.Environ()}
	one, err := r.talk(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	defer one.close()
	two, err := r.talk(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	defer two.close()
	rows, err := measureLines(one, two, 100)
	if err != nil {
		t.Fatal(err)
	}
	half, last := rows[len(rows)-2], rows[len(rows)-1] // the slowest line is the machine's
	if len(rows) != 8 || last.Name != "added per forwarded line p99" || last.Limit != floorForward || half.Value > 100 {
		t.Errorf("rows %+v", rows)
	}
	long, err := measureLongLines(one, two, settings{rounds: 1, megabytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(long) != 2 || long[0].Value <= 0 || long[1].Value <= 0 {
		t.Errorf("rows %+v", long)
	}
}

func TestACPAgentThatGoes(t *testing.T) {
	r := &rig{env: os.Environ()}
	if c, err := r.talk(t.Context(), "true"); err == nil {
		c.close()
		t.Error("an agent that says nothing was greeted")
	}
	if _, err := r.talk(t.Context(), "/nonexistent"); err == nil {
		t.Error("no agent was greeted")
	}
}

func TestChunkLine(t *testing.T) {
	for _, n := range []int{0, 200, longLine} {
		line := chunkLine(n)
		if !json.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 || len(line) < n {
			t.Errorf("%d bytes of text: %.100q", n, line)
		}
	}
}
