package mcp_test

import (
	"errors"
	"strings"
	"testing"

	"tether/agenttools"
	"tether/mcp"
	"tether/vocab"
)

// called adds a fake terminal with a name, or a machine and a name.
func (f *fakeTerminals) called(id, machine, name string, owner agenttools.Owner) *fakeTerminal {
	t := f.add(id, owner)
	t.info.Machine, t.info.Name = machine, name
	if machine != "" {
		t.info.Name = machine + "/" + name
	}
	return t
}

// Each tool accepts a name in place of an id, and answers with the id.
func TestToolsTakeNames(t *testing.T) {
	for _, ref := range []string{"pty-a", "dev-server", "laptop/dev-server"} {
		for _, c := range []struct {
			tool string
			args m
			want string
		}{
			{"read_terminal", m{}, `"terminalId":"pty-a","history":"hello\n"`},
			{"wait_terminal", m{"pattern": "hello"}, `"terminalId":"pty-a","reason":"pattern"`},
			{"write_terminal", m{"input": "x"}, `{"terminalId":"pty-a","written":1`},
			{"signal_terminal", m{"signal": "SIGINT"}, `{"terminalId":"pty-a","signal":"SIGINT"}`},
			{"promote_terminal", m{}, `"id":"pty-a"`},
			{"kill_terminal", m{}, `{"terminated":true,"id":"pty-a"}`},
		} {
			t.Run(c.tool+" "+ref, func(t *testing.T) {
				f := &fakeTerminals{}
				f.called("pty-a", "", "dev-server", agenttools.OwnerAgent).print("hello\r\n")
				f.called("pty-b", "", "other", agenttools.OwnerAgent)
				session := connect(t, newServer(t, mcp.Options{Tools: agenttools.New(agenttools.Options{Terminals: f, Machine: "laptop"})}), nil)
				c.args["terminalId"] = ref
				if got, isError := answer(t, session, c.tool, c.args); isError || !strings.Contains(got, c.want) {
					t.Errorf("answered %s, want %s in it", got, c.want)
				}
			})
		}
	}
}

// A call with a name that fits several terminals changes none of them.
func TestAmbiguousNames(t *testing.T) {
	f := &fakeTerminals{}
	f.called("pty-a", "", "npm", agenttools.OwnerAgent)
	f.called("pty-b", "", "npm", agenttools.OwnerAgent)
	session := one(t, f)
	for tool, args := range map[string]m{"read_terminal": {}, "wait_terminal": {}, "write_terminal": {"input": "x"}, "signal_terminal": {"signal": "SIGINT"}, "promote_terminal": {}, "kill_terminal": {}} {
		args["terminalId"] = "npm"
		if got, isError := answer(t, session, tool, args); !isError || got != `"npm" matches 2 terminals: pty-a (npm), pty-b (npm); use an id` {
			t.Errorf("%s: %s", tool, got)
		}
	}
	for _, i := range f.List() {
		if i.Exit != nil || i.Owner != agenttools.OwnerAgent {
			t.Errorf("something became of %+v", i)
		}
	}
	f.all[0].exit(vocab.Exit{})
	if got, _ := answer(t, session, "kill_terminal", m{"terminalId": "npm"}); !strings.Contains(got, "pty-b") {
		t.Errorf("with one of them running: %s", got)
	}
}

func TestResolve(t *testing.T) {
	ended := &vocab.Exit{}
	all := []agenttools.Info{
		{ID: "pty-1", Machine: "laptop", Name: "laptop/dev"},
		{ID: "pty-2", Machine: "box", Name: "box/dev"},
		{ID: "pty-3", Machine: "box", Name: "box/laptop/dev"}, // another machine's name for its own
		{ID: "pty-4", Machine: "box", Name: "box/build", Exit: ended},
		{ID: "pty-5", Machine: "laptop", Name: "laptop/build"},
		{ID: "pty-6", Machine: "box", Name: "box/old", Exit: ended},
		{ID: "pty-7", Machine: "box", Name: "box/pty-1"},
		{ID: "pty-8", Machine: "box", Name: "box/\x1b[1mbold\u202e"},
	}
	for ref, want := range map[string]string{
		"pty-1": "pty-1", "laptop/dev": "pty-1", "box/dev": "pty-2", "box/laptop/dev": "pty-3", "build": "pty-5", "box/build": "pty-4", "old": "pty-6",
		"box/pty-1": "pty-7", "[1mbold": "pty-8",
	} {
		if got, err := agenttools.Resolve(all, "", ref); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", ref, got, err, want)
		}
	}
	for _, ref := range []string{"", "/", "de", "laptop", "laptop/", "/dev", "pty-", "LAPTOP/dev"} {
		if got, err := agenttools.Resolve(all, "", ref); !errors.Is(err, agenttools.ErrNotFound) {
			t.Errorf("%q: %s, %v", ref, got, err)
		}
	}
	if _, err := agenttools.Resolve(all, "", "dev"); err == nil || err.Error() != `"dev" matches 2 terminals: pty-1 (laptop/dev), pty-2 (box/dev); use an id` {
		t.Errorf("dev: %v", err)
	}
	for range 10 {
		all = append(all, agenttools.Info{ID: "pty-x", Machine: "box", Name: "box/dev"})
	}
	if _, err := agenttools.Resolve(all, "", "dev"); err == nil || !strings.Contains(err.Error(), "matches 12 terminals") || !strings.HasSuffix(err.Error(), " and 4 more; use an id") {
		t.Errorf("many: %v", err)
	}
}
