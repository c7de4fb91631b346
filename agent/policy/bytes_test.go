package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/policy"
	"tether/internal/jsonspan"
	"tether/internal/testkit/must"
)

// Two commands with different bytes are different commands, also if a display cannot tell
// them apart.
func TestApprovalsOfBytes(t *testing.T) {
	changes := map[string]func(*policy.Request, string){
		"argument":  func(r *policy.Request, s string) { r.Argv = []string{"python3", "-c", s} },
		"line":      func(r *policy.Request, s string) { r.Argv, r.Line = nil, "python3 -c "+s },
		"directory": func(r *policy.Request, s string) { r.Cwd = "/home/p/" + s },
		"variable":  func(r *policy.Request, s string) { r.Env = []string{"LD_PRELOAD=" + s} },
	}
	for name, change := range changes {
		synctest.Test(t, func(t *testing.T) {
			e := must.Get(policy.New(settings(nil)))(t)
			p := pool(t)
			try := func(text string) <-chan string {
				r := asked()
				change(&r, text)
				done := make(chan string, 1)
				go func() {
					_, err := spawn(t.Context(), e, p, r)
					done <- codeOf(err)
				}()
				synctest.Wait()
				return done
			}
			first := try("a\xe9")
			questions, _, _ := e.Questions()
			if len(questions) != 1 {
				t.Fatalf("%s: %d questions, %q", name, len(questions), <-first)
			}
			if _, _, err := e.Answer(questions[0].ID, policy.Answer{Allow: true, For: time.Hour}); err != nil {
				t.Fatal(err)
			}
			if got := <-first; got != "" {
				t.Fatalf("%s: approved, and then %s", name, got)
			}
			if got := <-try("a\xe9"); got != "" {
				t.Errorf("%s: the same once more: %s", name, got)
			}
			for _, other := range []string{"a\xe8", "a\uFFFD", `$'a\xe9'`} {
				done := try(other)
				if questions, _, _ := e.Questions(); len(questions) != 1 {
					t.Errorf("%s: %q passed with the approval of another", name, other)
					continue
				} else if e.Plain(questions[0]) && name != "variable" && strings.Contains(other, "\xe8") {
					t.Errorf("%s: %q may be approved by a text that cannot show it", name, other)
				} else if _, _, err := e.Answer(questions[0].ID, policy.Answer{}); err != nil {
					t.Fatal(err)
				}
				<-done
			}
		})
	}
}

// The log and summaries show bytes that are not UTF-8 so that different ones differ, and
// the log keeps them.
func TestRecordsOfBytes(t *testing.T) {
	e := must.Get(policy.New(settings(nil)))(t)
	e.Audit(policy.Event{Type: policy.EventSpawn, Argv: []string{"rm", "a\xe9", "--token", "s\xe9cret"}, Cwd: "/d\xff", Line: "x\xe9", EnvNames: []string{"N\xfe"}, Detail: "d\xe9"})
	data, err := json.Marshal(e.Recent()[0])
	var r policy.Record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	must.Do(t, err)
	if got := jsonspan.Words(r.Argv, r.ArgvBytes); !slices.Equal(got, []string{"rm", "a\xe9", "--token", "[hidden]"}) || string(r.CwdBytes) != "/d\xff" {
		t.Errorf("%q in %q", got, r.CwdBytes)
	}
	if r.Line != `$'x\xe9'` || r.EnvNames[0] != `$'N\xfe'` || r.Detail != `$'d\xe9'` {
		t.Errorf("%q, %q, %q", r.Line, r.EnvNames, r.Detail)
	}
	q := asked()
	q.Argv = []string{"rm", "a\xe9"}
	if got := e.Summary(q); !strings.HasSuffix(got, ` rm $'a\xe9'`) {
		t.Errorf("summary %q", got)
	}
}
