package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// requestOf reads a command of a table: an argv as JSON, or a line.
func requestOf(t *testing.T, door, text string) policy.Request {
	t.Helper()
	r := policy.Request{Door: door, Actor: term.Agent("a"), Cwd: "/home/p/src", Background: true}
	if !strings.HasPrefix(text, "[") {
		r.Line = text
		return r
	}
	if err := json.Unmarshal([]byte(text), &r.Argv); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// engine returns one that ends with the test.
func engine(t *testing.T, o policy.Options) *policy.Engine {
	t.Helper()
	e := must.Get(policy.New(o))(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func TestCorpus(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	data := must.Get(os.ReadFile("testdata/corpus.txt"))(t)
	e := engine(t, policy.Options{})
	section := ""
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "# == "); ok {
			section = title
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		counts[section]++
		fields := strings.SplitN(line, " ", 3)
		if len(fields) != 3 {
			t.Fatalf("not a row: %q", line)
		}
		for i, door := range []string{policy.DoorMCP, policy.DoorACP} {
			d := e.Check(requestOf(t, door, fields[2]))
			if d.Effect.String() != fields[i] {
				t.Errorf("%s at %s: %s by %s (%s), want %s", fields[2], door, d.Effect, d.Rule, d.Reason, fields[i])
			}
			if strings.HasPrefix(section, "The block list") && d.Effect != policy.Allow && (d.Reason == policy.Blocked) != (d.Effect == policy.Deny) {
				t.Errorf("%s at %s: %s because %q; what is denied, and nothing else, has the sentence %q", fields[2], door, d.Effect, d.Reason, policy.Blocked)
			}
		}
	}
	if n := counts["28 ways around the list when it is read word by word."]; n != 28 {
		t.Errorf("%d ways around the list in the corpus, want 28", n)
	}
}
