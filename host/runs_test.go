package host_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/host/runs"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// keeper is a machine that answers questions about runs. It records them.
type keeper struct {
	*viewer
	asked []ahp.RunsParams
}

func (k *keeper) answers(a func(ahp.RunsParams) any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs = func(p ahp.RunsParams) any {
		k.mu.Lock()
		k.asked = append(k.asked, p)
		k.mu.Unlock()
		return a(p)
	}
}

func (k *keeper) last() (p ahp.RunsParams) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.asked); n > 0 {
		p = k.asked[n-1]
	}
	return p
}

// keeps connects a machine whose every answer is this JSON.
func keeps(t *testing.T, url, token, id, answer string) *keeper {
	t.Helper()
	k := &keeper{viewer: as(t, url, token, id, viewOptions{runs: true})}
	k.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Answer: []byte(answer)} })
	return k
}

// tryTool calls a tool and returns the text of its answer, or of its error.
func tryTool(t *testing.T, s *sdk.ClientSession, tool, args string) (text string, failed bool) {
	t.Helper()
	r := must.Get(s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)}))(t)
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// A machine is told who asks in the words of its grants. Only its owner, and agents of
// that person, need none.
func TestReadersOfRuns(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "agent.helper.ann", "agent.ci.bob", "operator.ops.bob", "observer.screen.bob", "admin.root.cyd")
	s.change(func(r *rights.Roster) { r.Groups["web"] = []string{s.of["agent.ci.bob"].Owner} })
	_, url := serve(t, host.Options{Access: s, People: s})
	k := keeps(t, url, "machine.laptop.ann", "laptop", `{"runs":[]}`)
	for token, want := range map[string]string{
		"agent.helper.ann":    "[agent:helper everyone] true",
		"agent.ci.bob":        "[agent:ci everyone] false",
		"operator.ops.bob":    "[agent:ops everyone] false",
		"observer.screen.bob": "[bob group:web everyone] false",
		"admin.root.cyd":      "[cyd everyone] false",
	} {
		agent := must.Get(overHTTP(t, url, token, nil))(t)
		tryTool(t, agent, "list_runs", `{}`)
		if p := k.last(); fmt.Sprint(p.Reader.Names, " ", p.Reader.Owner) != want {
			t.Errorf("%s: %+v, want %s", token, p.Reader, want)
		}
	}
	if _, err := overHTTP(t, url, "machine.laptop.ann", nil); err == nil {
		t.Error("a machine asks")
	}
	s.change(func(r *rights.Roster) { r.On = false })
}

// Where everybody sees everything, readers need no grant.
func TestReadersOfRunsWithoutAudiences(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot")})
	k := keeps(t, url, "machine-laptop", "laptop", `{"runs":[]}`)
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	tryTool(t, agent, "list_runs", `{"name":"laptop/dev","max":7}`)
	if p := k.last(); !p.Reader.Owner || p.Tool != "list_runs" || string(p.Arguments) != `{"max":7,"name":"dev"}` || p.Shows != 16_000 || p.Channel != "" {
		t.Errorf("%+v with %s", p, p.Arguments)
	}
	tryTool(t, agent, "verdict", `{"names":["laptop/dev","go test ./..."]}`)
	if p := k.last(); string(p.Arguments) != `{"names":["dev","go test ./..."]}` {
		t.Errorf("%s", p.Arguments)
	}
	agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_runs", Arguments: json.RawMessage(`{"pattern":"("}`)})
	if p := k.last(); p.Tool != "verdict" {
		t.Errorf("a broken pattern reaches the machine: %+v", p)
	}
}

const (
	oneRun     = `{"id":"pty-a.3","name":"dev","command":"go test","started":"2026-01-02T03:04:05Z","outcome":"failing","exitCode":1,"bytes":7}`
	anotherRun = `{"id":"pty-b","command":"make","started":"2026-01-02T04:04:05Z","outcome":"good","exitCode":0,"bytes":9}`
)

// Answers of several machines are one, the newest first, with the machines' names.
func TestRunsOfSeveralMachines(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "machine-tower", "machine-old", "agent-bot")})
	laptop := keeps(t, url, "machine-laptop", "l", `{"runs":[`+oneRun+`]}`)
	tower := keeps(t, url, "machine-tower", "t", `{"runs":[`+anotherRun+`],"more":true,"away":["x"]}`)
	as(t, url, "machine-old", "o", viewOptions{resume: true}) // does not know the request
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	var list struct {
		Runs         []struct{ ID, Name string }
		More         bool
		Away, Failed []string
	}
	use(t, agent, "list_runs", nil, &list)
	if len(list.Runs) != 2 || list.Runs[0].ID != "tower/pty-b" || list.Runs[1].ID != "laptop/pty-a.3" || list.Runs[1].Name != "laptop/dev" || !list.More || list.Away != nil {
		t.Errorf("%+v", list)
	}
	laptop.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Error: "too busy"} })
	for tool, args := range map[string]string{"list_runs": `{}`, "search_runs": `{"pattern":"x"}`, "verdict": `{}`} {
		empty := map[string]string{"list_runs": `{"runs":[]}`, "search_runs": `{"matches":[]}`, "verdict": `{"series":[]}`}[tool]
		tower.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Answer: []byte(empty)} })
		if text, failed := tryTool(t, agent, tool, args); failed || text != strings.TrimSuffix(empty, "}")+`,"failed":["laptop: too busy"]}` {
			t.Errorf("%s of two machines, one of which fails: %s", tool, text)
		}
	}
	laptop.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Answer: []byte(`{"runs":[` + oneRun + `]}`)} })
	before := len(tower.asked)
	use(t, agent, "list_runs", map[string]any{"name": "laptop/dev"}, &list)
	if len(tower.asked) != before || laptop.last().Tool != "list_runs" {
		t.Error("a machine is asked about another one")
	}
	const read = `{"terminalId":"pty-a.3","history":"out\u001b[1m\n","cursor":4,"truncated":false,"exited":true,"exitCode":-1,"exitedAt":7,"commands":[{"n":3,"line":"go test","verified":true,"start":0,"end":4}]}`
	laptop.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Answer: []byte(read)} })
	tower.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Error: "Run not found", Unknown: true} })
	if text, failed := tryTool(t, agent, "read_terminal", `{"run":"laptop/pty-a.3","tail":5}`); failed || text != strings.Replace(read, "pty-a.3", "laptop/pty-a.3", 1) || string(laptop.last().Arguments) != `{"run":"pty-a.3","tail":5}` {
		t.Errorf("%s, asked %s", text, laptop.last().Arguments)
	}
	if text, failed := tryTool(t, agent, "read_terminal", `{"run":"pty-a.3"}`); failed || !strings.Contains(text, "laptop/pty-a.3") {
		t.Errorf("without the machine's name: %s", text)
	}
	tower.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Answer: []byte(read)} })
	if text, failed := tryTool(t, agent, "read_terminal", `{"run":"pty-a.3"}`); !failed || !strings.HasPrefix(text, "several machines have runs of this name") {
		t.Errorf("at two machines: %s", text)
	}
	unknown := func(ahp.RunsParams) any { return ahp.RunsResult{Error: "no", Unknown: true} }
	laptop.answers(unknown)
	tower.answers(unknown)
	if text, failed := tryTool(t, agent, "compare_runs", `{"name":"dev"}`); !failed || text != "No such run; list_runs lists them" {
		t.Errorf("at none: %s", text)
	}
}

// What a machine answers is checked: numbers, times, lists and texts.
func TestAnswersAboutRunsAreChecked(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot")})
	k := keeps(t, url, "machine-laptop", "laptop", "{}")
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	for name, answer := range map[string]any{
		"no object":          ahp.RunsResult{Answer: []byte(`[1]`)},
		"nothing":            map[string]any{},
		"wrong type":         ahp.RunsResult{Answer: []byte(`{"runs":"x"}`)},
		"negative number":    ahp.RunsResult{Answer: []byte(`{"runs":[` + strings.Replace(oneRun, `"bytes":7`, `"bytes":-7`, 1) + `]}`)},
		"great number":       ahp.RunsResult{Answer: []byte(`{"runs":[` + strings.Replace(oneRun, `"bytes":7`, `"bytes":9223372036854775807`, 1) + `]}`)},
		"a time to come":     ahp.RunsResult{Answer: []byte(`{"runs":[` + strings.Replace(oneRun, `2026`, `9026`, 1) + `]}`)},
		"a long text":        ahp.RunsResult{Answer: []byte(`{"runs":[` + strings.Replace(oneRun, `go test`, strings.Repeat("x", 5000), 1) + `]}`)},
		"a long list":        ahp.RunsResult{Answer: []byte(`{"runs":[` + strings.Repeat(`{},`, 1000) + `{}]}`)},
		"a long answer":      ahp.RunsResult{Answer: []byte(`{"x":"` + strings.Repeat("x", ahp.MaxRunsAnswer) + `"}`)},
		"a long error":       ahp.RunsResult{Error: strings.Repeat("x", 4000)},
		"something else":     "x",
		"an unpaired half":   json.RawMessage(`{"answer":{"runs":[{"id":"\ud800"}]}}`),
		"neither of the two": ahp.RunsResult{Unknown: true, Answer: []byte(`{}`), Error: strings.Repeat("x", 4000)},
	} {
		k.answers(func(ahp.RunsParams) any { return answer })
		if text, failed := tryTool(t, agent, "list_runs", `{}`); !failed || text != "laptop: the machine gave no usable answer" {
			t.Errorf("%s: %.300s", name, text)
		}
	}
	k.answers(func(ahp.RunsParams) any {
		return ahp.RunsResult{Answer: []byte(`{"runs":[` + strings.Replace(oneRun, `go test`, `go\u001b[31m\u202e test`, 1) + `]}`)}
	})
	if text, failed := tryTool(t, agent, "list_runs", `{}`); failed || !strings.Contains(text, `"go[31m test"`) {
		t.Errorf("text with controls: %s", text)
	}
	k.answers(func(ahp.RunsParams) any { return ahp.RunsResult{Error: "too much\x1b[2J"} })
	if text, failed := tryTool(t, agent, "verdict", `{}`); !failed || text != "laptop: too much[2J" {
		t.Errorf("an error: %q", text)
	}
}

// While a machine is away, the answer says so. Whoever does not see it is not told.
func TestRunsWhileTheMachineIsAway(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "agent.helper.ann", "agent.ci.bob")
	_, url := serve(t, host.Options{Access: s, People: s})
	k := keeps(t, url, "machine.laptop.ann", "laptop", `{"runs":[]}`)
	k.create("ahp-terminal:/dev")
	must.Do(t, k.audience("ahp-terminal:/dev", to()))
	helper, ci := must.Get(overHTTP(t, url, "agent.helper.ann", nil))(t), must.Get(overHTTP(t, url, "agent.ci.bob", nil))(t)
	k.close()
	const away = "the machine is away: laptop can be asked about earlier runs when it is back"
	for tool, args := range map[string]string{"list_runs": `{"name":"laptop/dev"}`, "verdict": `{}`, "read_terminal": `{"run":"laptop/pty-a"}`, "search_runs": `{"pattern":"x"}`, "problems": `{"run":"pty-a"}`} {
		if text, failed := tryTool(t, helper, tool, args); !failed || text != away {
			t.Errorf("%s %s: %q", tool, args, text)
		}
	}
	if text, failed := tryTool(t, ci, "list_runs", `{"name":"laptop/dev"}`); failed || text != `{"runs":[]}` {
		t.Errorf("somebody who does not see it: %s", text)
	}
	if text, failed := tryTool(t, ci, "read_terminal", `{"run":"laptop/pty-a"}`); !failed || text != "No such run; list_runs lists them" {
		t.Errorf("likewise: %s", text)
	}
	again := keeps(t, url, "machine.laptop.ann", "laptop", `{"runs":[`+oneRun+`]}`)
	if text, failed := tryTool(t, helper, "list_runs", `{}`); failed || !strings.Contains(text, "laptop/dev") || again.last().Tool == "" {
		t.Errorf("it is back: %s", text)
	}
}

// One reader has only some questions under way; further ones are refused at once.
func TestManyQuestionsAboutRuns(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot")})
	k := keeps(t, url, "machine-laptop", "laptop", `{"runs":[]}`)
	open := make(chan struct{})
	k.answers(func(ahp.RunsParams) any { <-open; return ahp.RunsResult{Answer: []byte(`{"runs":[]}`)} })
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	const asks = 20
	answers := make(chan string, asks)
	for range asks {
		go func() {
			r, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_runs", Arguments: map[string]any{}})
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- r.Content[0].(*sdk.TextContent).Text
		}()
	}
	var all []string
	for range asks - 6 {
		all = append(all, <-answers)
	}
	close(open)
	for range 6 {
		all = append(all, <-answers)
	}
	slices.Sort(all)
	if refused := "too many questions about earlier runs at a time: try again"; all[0] != refused || all[asks-7] != refused || all[asks-6] != `{"runs":[]}` {
		t.Errorf("%q", all)
	}
}

// The page asks for the runs of a terminal and its verdict, for somebody who sees it.
// Guests do not: they see what runs now.
func TestGuestsAskForNoRuns(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.screen.ann", "observer.other.bob", "agent.helper.ann")
	h, url := serve(t, host.Options{Access: s, People: s})
	k := keeps(t, url, "machine.laptop.ann", "laptop", "{}")
	k.answers(func(p ahp.RunsParams) any {
		if p.Tool == "verdict" {
			return ahp.RunsResult{Answer: []byte(`{"series":[{"name":"dev","verdict":"failing","since":"2026-01-02T03:04:05Z","newest":{"run":"pty-a","at":"2026-01-02T03:04:05Z","why":"exit status 2"}}]}`)}
		}
		return ahp.RunsResult{Answer: []byte(`{"runs":[` + oneRun + `]}`)}
	})
	k.create("ahp-terminal:/dev")
	must.Do(t, k.audience("ahp-terminal:/dev", to()))
	path := "/terminals/" + host.IDOf("ahp-terminal:/dev") + "/runs"
	answer, body := ask(t, url, visit{path: path, token: "observer.screen.ann"})
	if answer.StatusCode != 200 || !strings.Contains(body, `"id":"laptop/pty-a.3"`) || !strings.Contains(body, `"verdict":"failing"`) || k.last().Channel != "ahp-terminal:/dev" {
		t.Errorf("%d %s; asked %+v", answer.StatusCode, body, k.last())
	}
	asked := len(k.asked)
	if answer, body := ask(t, url, visit{path: path, token: "observer.other.bob"}); answer.StatusCode != 404 || len(k.asked) != asked {
		t.Errorf("somebody who does not see it: %d %s", answer.StatusCode, body)
	}
	if answer, body := ask(t, url, visit{path: path, token: "agent.helper.ann"}); answer.StatusCode != 403 || len(k.asked) != asked {
		t.Errorf("an agent at the page: %d %s", answer.StatusCode, body)
	}
	if _, err := h.Runs().CallFor(t.Context(), rights.Principal{Guest: "ahp-terminal:/dev", Role: rights.RoleObserver}, runs.Question{}); err == nil || !strings.HasPrefix(err.Error(), "guests see what runs now") {
		t.Errorf("a guest: %v", err)
	}
	k.close()
	testkit.Eventually(t, patience, "the machine is away", func() bool {
		_, body = ask(t, url, visit{path: path, token: "observer.screen.ann"})
		return strings.Contains(body, "the machine is away: laptop can be asked")
	})
}
