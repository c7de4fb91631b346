package local_test

import (
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The person is shown problems and digests with secrets masked, also of a terminal that
// is lent to nobody, and unmasked if they say so. Agents are never.
func TestProblemsAreMasked(t *testing.T) {
	rules, err := redact.Compile(redact.Options{Tokens: true})
	must.Do(t, err)
	w := serve(t, local.Options{}, term.Options{Outward: rules})
	shown, child := w.spawn("build")
	token := "ghp_" + strings.Repeat("a1B2", 9)
	child.Print("main.c:3:5: error: no such token: " + token + "\r\nmain.c:4:1: warning: unused\r\n")
	ask := func(c *localclient.Client, o localclient.ProblemOptions) (l localapi.ProblemList) {
		t.Helper()
		testkit.Eventually(t, patience, "both are found", func() bool {
			if l, err = c.Problems(t.Context(), shown.ID, o); err != nil {
				t.Fatal(err)
			}
			return l.Errors+l.Warnings == 2
		})
		return l
	}
	masked := ask(w.client, localclient.ProblemOptions{})
	if got := masked.Problems[0].Message; masked.Masked != 1 || !strings.HasPrefix(got, "no such token: ") || strings.Contains(got, "a1B2a1B2") || len(got) != len("no such token: ")+len(token) {
		t.Errorf("masked: %+v", masked)
	}
	if raw := ask(w.client, localclient.ProblemOptions{Raw: true}); raw.Masked != 0 || raw.Problems[0].Message != "no such token: "+token {
		t.Errorf("unmasked: %+v", raw)
	}
	if one := ask(w.client, localclient.ProblemOptions{Max: 1}); len(one.Problems) != 1 || !one.More {
		t.Errorf("one: %+v", one)
	}
	for raw, want := range map[bool]bool{false: false, true: true} {
		d, err := w.client.Digest(t.Context(), shown.ID, raw)
		if err != nil || strings.Contains(d.Text, token) != want || !strings.Contains(d.Text, "1 errors, 1 warnings") {
			t.Errorf("digest, raw %t: %v\n%s", raw, err, d.Text)
		}
	}
	if _, err := w.client.Problems(t.Context(), "nothing", localclient.ProblemOptions{}); err == nil {
		t.Error("there are problems in no terminal")
	}
}
