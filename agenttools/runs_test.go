package agenttools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"tether/agent/verdict"
	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// past has kept runs and no terminals. It records the last question.
type past struct {
	asked any
	runs  int // number of runs and of matches that there are
	err   error
}

func (*past) List() []agenttools.Info                             { return nil }
func (*past) Open(string) (agenttools.Terminal, error)            { return nil, agenttools.ErrNotFound }
func (p *past) Runs() agenttools.Runs                             { return kept{p} }
func (p *past) answer(asked any) error                            { p.asked = asked; return p.err }
func (*past) Changed(context.Context, uint64) (_ uint64, _ error) { return 0, nil }

type kept struct{ p *past }

func (k kept) List(_ context.Context, q agenttools.RunQuery) (a agenttools.RunsAnswer, err error) {
	for n := range min(q.Max, k.p.runs) {
		a.Runs = append(a.Runs, agenttools.Run{ID: fmt.Sprint("pty-a.", k.p.runs-n), Command: strings.Repeat("make ", 50), Outcome: verdict.Good})
	}
	a.More = k.p.runs > q.Max
	return a, k.p.answer(q)
}

func (k kept) Open(id string) (agenttools.Terminal, error) {
	if err := k.p.answer(id); err != nil || id != "pty-a.3" {
		return nil, agenttools.ErrNotFound
	}
	return oldRun{}, nil
}

func (k kept) Search(ctx context.Context, q agenttools.RunSearch) (a agenttools.FoundAnswer, err error) {
	if by, ok := ctx.Deadline(); !ok || time.Until(by) > 5*time.Second {
		return a, errors.New("a search without a bound")
	}
	for range min(q.Max, k.p.runs) {
		a.Matches = append(a.Matches, agenttools.Match{Run: "pty-a.3", Line: strings.Repeat("x", 500)})
	}
	return a, k.p.answer(q)
}

func (k kept) Compare(_ context.Context, p agenttools.RunPair) (a agenttools.CompareAnswer, err error) {
	a.Comparison = &verdict.Comparison{}
	for range 200 {
		a.Added = append(a.Added, verdict.Line{Text: strings.Repeat("x", 500)})
	}
	return a, k.p.answer(p)
}

func (k kept) Verdict(_ context.Context, names []string) (a agenttools.VerdictAnswer, err error) {
	for range 500 {
		a.Series = append(a.Series, verdict.Verdict{State: verdict.StateGood})
	}
	return a, k.p.answer(names)
}

// oldRun is a run that has printed one line with an error.
type oldRun struct{}

const printed = "main.go:3:2: undefined: x\r\n"

func (oldRun) Info() agenttools.Info {
	return agenttools.Info{ID: "pty-a.3", Cols: 80, Rows: 24, End: int64(len(printed)), Command: []string{"go", "build"}, Exit: &vocab.Exit{Code: 1, Reason: vocab.ExitItself}}
}
func (oldRun) Commands() []vocab.Command                  { return nil }
func (oldRun) Read(from int64) (agenttools.Reader, error) { return &oldReader{int(from), false}, nil }

type oldReader struct {
	at   int
	over bool
}

func (r *oldReader) TryNext(buf []byte) (ev agenttools.Event, ok bool, err error) {
	switch n := copy(buf, printed[r.at:]); {
	case n > 0:
		r.at += n
		return agenttools.Event{Data: buf[:n], Off: int64(r.at)}, true, nil
	case !r.over:
		r.over = true
		return agenttools.Event{Exited: true, Off: int64(r.at)}, true, nil
	}
	return ev, false, io.EOF
}

func (r *oldReader) Next(_ context.Context, buf []byte) (agenttools.Event, error) {
	ev, _, err := r.TryNext(buf)
	return ev, err
}
func (*oldReader) Close() {}

func ask(t *testing.T, over agenttools.Terminals, tool, args string) (text string, err error) {
	t.Helper()
	s := agenttools.New(agenttools.Options{Terminals: over})
	defer s.Close()
	r, err := s.Call(t.Context(), tool, json.RawMessage(args), agenttools.Caller{})
	if err != nil {
		return "", err
	}
	if !r.Untrusted {
		t.Errorf("%s: the answer does not say that it holds output", tool)
	}
	return must.Get(r.Text())(t), nil
}

// Runs are listed, searched, compared, judged and read with checked arguments, in answers
// that fit what a client shows.
func TestToolsOfRuns(t *testing.T) {
	p := &past{runs: 150}
	for _, c := range []struct{ tool, args, asked string }{
		{"list_runs", `{}`, "{   20}"},
		{"list_runs", `{"name":"dev","cwd":"/w","max":200}`, "{dev /w  200}"},
		{"search_runs", `{"pattern":"(?i)error","max":150.0}`, "{{   150} (?i)error 2}"},
		{"search_runs", `{"pattern":"x","around":0,"name":"dev"}`, "{{dev   20} x 0}"},
		{"compare_runs", `{"name":"dev"}`, "{dev }"},
		{"compare_runs", `{"name":"pty-a.3","with":"pty-a.1"}`, "{pty-a.3 pty-a.1}"},
		{"verdict", `{}`, "[]"},
		{"verdict", `{"names":["dev","go test"]}`, "[dev go test]"},
		{"read_terminal", `{"run":"pty-a.3"}`, "pty-a.3"},
		{"read_terminal", `{"run":"pty-a.3","format":"digest"}`, "pty-a.3"},
		{"problems", `{"run":"pty-a.3"}`, "pty-a.3"},
	} {
		text, err := ask(t, p, c.tool, c.args)
		asked := strings.ReplaceAll(fmt.Sprint(p.asked), "0001-01-01 00:00:00 +0000 UTC", "")
		if err != nil || asked != c.asked || len(text) > 16_000 {
			t.Errorf("%s %s: %d bytes, %v, asked for %q, want %q", c.tool, c.args, len(text), err, asked, c.asked)
		}
		if strings.Contains(c.args, `"run"`) && !strings.Contains(text, "undefined: x") {
			t.Errorf("%s %s: %s", c.tool, c.args, text)
		}
	}
	if _, err := ask(t, p, "list_runs", `{"since":"2d"}`); err != nil || time.Since(p.asked.(agenttools.RunQuery).Since).Round(time.Hour) != 48*time.Hour {
		t.Errorf("since two days: %v, %+v", err, p.asked)
	}
	if _, err := ask(t, p, "list_runs", `{"since":"2026-01-31T08:00:00Z"}`); err != nil || p.asked.(agenttools.RunQuery).Since.Year() != 2026 {
		t.Errorf("since a time: %v, %+v", err, p.asked)
	}
	if text := must.Get(ask(t, p, "list_runs", `{"max":150}`))(t); !strings.Contains(text, `"more":true`) || !strings.Contains(text, "pty-a.150") || strings.Contains(text, `"pty-a.1"`) {
		t.Errorf("an answer with too many runs keeps the newest and says so: %d bytes", len(text))
	}
}

func TestBadArgumentsAboutRuns(t *testing.T) {
	p := &past{}
	long := strings.Repeat("x", 1001)
	for _, c := range []struct{ tool, args, want string }{
		{"list_runs", `{"max":201}`, "max 201 is out of range, it must be 1 to 200"},
		{"list_runs", `{"max":0}`, "max 0 is out of range, it must be 1 to 200"},
		{"list_runs", `{"since":"yesterday"}`, `since "yesterday" must be how long ago`},
		{"list_runs", `{"since":"-2d"}`, `since "-2d" must be how long ago`},
		{"list_runs", `{"name":"` + long + `"}`, "name has 1001 bytes, at most 1000 are allowed"},
		{"list_runs", `{"path":"/"}`, `unknown argument "path"`},
		{"search_runs", `{}`, "pattern is missing"},
		{"search_runs", `{"pattern":"("}`, "pattern: "},
		{"search_runs", `{"pattern":"` + long + `"}`, "pattern has 1001 bytes"},
		{"search_runs", `{"pattern":"x","around":11}`, "around 11 is out of range"},
		{"compare_runs", `{}`, "name is missing; list_runs lists the runs"},
		{"verdict", `{"names":"dev"}`, "names must be a list of strings"},
		{"verdict", `{"names":["` + strings.Repeat(`x","`, 20) + `x"]}`, "21 names are too many"},
		{"read_terminal", `{}`, "terminalId is missing"},
		{"read_terminal", `{"run":"pty-a.3","terminalId":"pty-a"}`, "terminalId and run exclude each other"},
		{"read_terminal", `{"run":"pty-b"}`, `Run not found: "pty-b"; list_runs lists them`},
		{"problems", `{"run":"` + long + `"}`, "run has 1001 bytes"},
		{"wait_terminal", `{"run":"pty-a.3"}`, `unknown argument "run"`},
	} {
		if _, err := ask(t, p, c.tool, c.args); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %.60s: %v, want %q", c.tool, c.args, err, c.want)
		}
	}
	p.err = agenttools.ErrNotFound
	if _, err := ask(t, p, "compare_runs", `{"name":"dev"}`); err == nil || err.Error() != `Run not found: "dev"; list_runs lists them` {
		t.Errorf("runs that are not to be seen do not exist: %v", err)
	}
}

// nothing keeps no runs.
type nothing struct{ past }

func (*nothing) Runs() agenttools.Runs { return nil }

// Where no runs are kept, no tool and no argument speaks of them.
func TestNoToolsWithoutRuns(t *testing.T) {
	s := agenttools.New(agenttools.Options{Terminals: &nothing{}})
	defer s.Close()
	for _, tool := range s.Tools() {
		if strings.Contains(tool.Name, "_runs") || strings.Contains(string(tool.InputSchema), `"run":`) || tool.Name == "verdict" {
			t.Errorf("%s %s", tool.Name, tool.InputSchema)
		}
	}
	if _, err := ask(t, &nothing{}, "read_terminal", `{"run":"pty-a.3"}`); err == nil || err.Error() != "no runs are kept here" {
		t.Errorf("run where none are kept: %v", err)
	}
}

// elsewhere has runs at other machines.
type elsewhere struct {
	nothing
	asked string
}

func (e *elsewhere) CallRuns(_ context.Context, tool string, args json.RawMessage, shows int) (any, error) {
	e.asked = fmt.Sprint(tool, " ", string(args), " ", shows)
	return agenttools.RunsAnswer{Missing: agenttools.Missing{Away: []string{"laptop"}}}, nil
}

// Calls about runs of other machines are carried out there, after a check of the
// arguments.
func TestCallsAboutRunsElsewhere(t *testing.T) {
	e := &elsewhere{}
	for _, tool := range []string{"list_runs", "read_terminal", "problems"} {
		args := `{"run":"laptop/pty-a.3"}`
		if tool == "list_runs" {
			args = `{"name":"laptop/dev"}`
		}
		text, err := ask(t, e, tool, args)
		if want := tool + " " + args + " 16000"; err != nil || e.asked != want || text != `{"runs":null,"away":["laptop"]}` {
			t.Errorf("%s: %s, %v; asked for %q, want %q", tool, text, err, e.asked, want)
		}
	}
	e.asked = ""
	if _, err := ask(t, e, "search_runs", `{"pattern":"("}`); err == nil || e.asked != "" {
		t.Errorf("a broken pattern is refused here: %v, %q", err, e.asked)
	}
}
