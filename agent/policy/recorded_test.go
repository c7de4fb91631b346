package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

var update = flag.Bool("update", false, "write into testdata/recorded.jsonl which rules ask")

// recordedRow is one line of testdata/recorded.jsonl: the beginning of a session, or a
// command of the session that began last.
type recordedRow struct {
	Day     int      `json:"day,omitempty"`
	Project string   `json:"project,omitempty"`
	By      string   `json:"by,omitempty"` // the agent program that sent it in this form, if it was one
	Cmd     string   `json:"cmd,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	Cwd     string   `json:"cwd,omitempty"` // from the project's directory
	Exit    int      `json:"exit,omitempty"`
	MCP     string   `json:"mcp,omitempty"` // the rule that asks or denies there, "" for none
	ACP     string   `json:"acp,omitempty"`
}

// rule is the one that lets the command not pass, "" if none does.
func (r *recordedRow) rule(e *policy.Engine, door, project string) string {
	d := e.Check(policy.Request{Door: door, Actor: term.Agent("a"), Cwd: "/home/dev/src/" + project + "/" + r.Cwd, Background: true,
		Line: r.Cmd, Argv: r.Argv})
	if d.Effect == policy.Allow {
		return ""
	}
	return d.Rule
}

// A day of an agent's real work costs at most two questions more at each door than before
// the table read programs, and only the requests that the corpus lists need a question.
func TestRecordedCommands(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	e := engine(t, policy.Options{})
	type cost struct{ commands, mcp, acp int }
	days := map[int]*cost{}
	var day *cost
	project := ""
	var out bytes.Buffer
	data := must.Get(os.ReadFile("testdata/recorded.jsonl"))(t)
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
			continue
		}
		var r recordedRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Day != 0 {
			out.WriteString(line)
			if project, day = r.Project, days[r.Day]; day == nil {
				day = &cost{}
				days[r.Day] = day
			}
			continue
		}
		mcp, acp := r.rule(e, policy.DoorMCP, project), r.rule(e, policy.DoorACP, project)
		if !*update && (mcp != r.MCP || acp != r.ACP) {
			t.Errorf("%s%q: %q at mcp and %q at acp, want %q and %q", r.Cmd, r.Argv, mcp, acp, r.MCP, r.ACP)
		}
		day.commands++
		if r.MCP = mcp; mcp != "" {
			day.mcp++
		}
		if r.ACP = acp; acp != "" {
			day.acp++
		}
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		must.Do(t, enc.Encode(r))
	}
	if *update {
		must.Do(t, os.WriteFile("testdata/recorded.jsonl", out.Bytes(), 0o644))
	}
	all := 0
	for _, n := range slices.Sorted(maps.Keys(days)) {
		all += days[n].commands
		t.Logf("day %d: %d commands, %d questions at mcp, %d at acp", n, days[n].commands, days[n].mcp, days[n].acp)
		if days[n].commands < 100 {
			t.Errorf("day %d has %d commands, want at least 100", n, days[n].commands)
		}
	}
	if len(days) < 10 || all < 1000 {
		t.Errorf("%d commands of %d days, want at least 1000 of 10", all, len(days))
	}
	before := rows(t, "recorded_before.txt")
	if len(before) != len(days) {
		t.Errorf("%d days with a count of before, want %d", len(before), len(days))
	}
	for _, row := range before {
		var n int
		var was cost
		if _, err := fmt.Sscanf(row, "%d %d %d %d", &n, &was.commands, &was.mcp, &was.acp); err != nil || days[n] == nil {
			t.Fatalf("not a row: %q", row)
		}
		is := days[n]
		if is.commands != was.commands {
			t.Errorf("day %d has %d commands; %d were counted before", n, is.commands, was.commands)
		}
		if is.mcp > was.mcp+2 || is.acp > was.acp+2 {
			t.Errorf("day %d: %d and %d questions at mcp and acp; before there were %d and %d, and at most two more may be asked", n, is.mcp, is.acp, was.mcp, was.acp)
		}
	}
}
