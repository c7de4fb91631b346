package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
	"tether/vocab"
)

// problemsOf asks for the problems of a terminal.
func problemsOf(t *testing.T, session *sdk.ClientSession, args any) agenttools.ProblemsAnswer {
	t.Helper()
	text, isError := answer(t, session, "problems", args)
	if isError {
		t.Fatalf("problems %v: %s", args, text)
	}
	var a agenttools.ProblemsAnswer
	must.Do(t, json.Unmarshal([]byte(text), &a))
	return a
}

// Problems and digests fit what the client shows, however many problems there are: the
// first ones come, and the cursor gets the rest.
func TestProblemsFitTheirClient(t *testing.T) {
	for client, most := range map[string]int{"test": 16_000, "codex-mcp-client": 10_000, "@cline/core": 5_000} {
		for name, message := range map[string]string{"plain": strings.Repeat("wrong ", 60), "quotes": strings.Repeat(`"a\`, 100)} {
			t.Run(client+" "+name, func(t *testing.T) {
				f, x := withTerminal("pty-a")
				for n := range 90 {
					x.print(fmt.Sprintf("src/dir%d/file%d.c:%d:5: error: %d is %s\r\n", n%3, n%40, n+1, n, message))
				}
				session, _ := connectAs(t, newServer(t, mcp.Options{Tools: toolsOver(f)}), sdk.NewClient(&sdk.Implementation{Name: client, Version: "1"}, nil))
				var seen []string
				for args := (m{"terminalId": "pty-a"}); ; {
					text, _ := answer(t, session, "problems", args)
					var a agenttools.ProblemsAnswer
					unmarshal(t, text, &a)
					if seen = append(seen, strings.Fields(files(a))...); len(text) > most || a.Errors != 90 || a.More && len(text) < most/2 {
						t.Fatalf("%d problems in %d bytes, of %d", len(a.Problems), len(text), a.Errors)
					}
					if args["since"] = a.Cursor; !a.More {
						break
					}
				}
				if len(seen) != 90 || seen[89] != "/project/src/dir2/file9.c:90" {
					t.Errorf("seen were %d: %s", len(seen), seen)
				}
				if all := problemsOf(t, session, m{"terminalId": "pty-a", "max": 90}); len(all.Problems) != 90 {
					t.Errorf("of 90 that were asked for there are %d", len(all.Problems))
				}
				text, _ := answer(t, session, "read_terminal", m{"terminalId": "pty-a", "format": "digest"})
				if len(text) > most || len(text) < min(most, 8<<10)*2/3 || !strings.Contains(text, "90 errors, 0 warnings") || !strings.Contains(text, "file0.c:1:5") || !strings.Contains(text, "errors by file") || !strings.Contains(text, "--- end") {
					t.Errorf("%d bytes: %s", len(text), text)
				}
			})
		}
	}
}

func files(a agenttools.ProblemsAnswer) string {
	var all []string
	for _, p := range a.Problems {
		all = append(all, fmt.Sprintf("%s:%d", p.File, p.Line))
	}
	return strings.Join(all, " ")
}

func TestProblems(t *testing.T) {
	f := &fakeTerminals{}
	x := f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	x.print("cc main.c\r\nmain.c:3:5: \x1b[31merror:\x1b[m no\r\nb.c:1: warn")
	first := problemsOf(t, session, m{"terminalId": "pty-a"})
	if files(first) != "/project/main.c:3" || first.Errors != 1 || first.Unseen != 0 || first.Cleared {
		t.Errorf("at first: %+v", first)
	}
	x.print("ing: y\r\n")
	x.exit(vocab.Exit{Code: 2, Reason: "exited"})
	second := problemsOf(t, session, m{"terminalId": "pty-a", "since": first.Cursor})
	if files(second) != "/project/b.c:1" || second.Errors != 1 || second.Warnings != 1 || !second.Exited || second.ExitCode != 2 {
		t.Errorf("since then: %+v", second)
	}
	one := problemsOf(t, session, m{"terminalId": "pty-a", "max": 1})
	if files(one) != "/project/main.c:3" || !one.More {
		t.Errorf("one at a time: %+v", one)
	}
	if rest := problemsOf(t, session, m{"terminalId": "pty-a", "since": one.Cursor}); files(rest) != "/project/b.c:1" || rest.More {
		t.Errorf("the rest: %+v", rest)
	}
	if text, isError := answer(t, session, "problems", m{"terminalId": "pty-a", "max": 0}); !isError {
		t.Errorf("max 0: %s", text)
	}
}

// When the same command line runs again, its earlier problems are cleared. Paths are
// relative to the directory of the command.
func TestProblemsOfCommands(t *testing.T) {
	f := &fakeTerminals{}
	x := f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	run := func(line, output string) {
		start := x.Info().End
		x.finish(vocab.Command{N: 1, Line: new(line), Start: start, End: start + int64(len(output))}) // a command is known before its output
		x.print(output)
	}
	run("make", "a.c:1: error: x\n")
	x.add(agenttools.Event{Dir: "/other"})
	run("ls", "b.c:2: error: x\n")
	if a := problemsOf(t, session, m{"terminalId": "pty-a"}); files(a) != "/project/a.c:1 /other/b.c:2" {
		t.Errorf("two commands: %+v", a)
	}
	cursor := x.Info().End
	run("make", "all is well\n")
	if a := problemsOf(t, session, m{"terminalId": "pty-a", "since": cursor}); !a.Cleared || a.Errors != 1 {
		t.Errorf("after make ran again: %+v", a)
	}
}

// The answer reports output that was lost before the first request. Problems in later
// output are remembered after that output is lost.
func TestProblemsOutliveOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTerminals{}
		x := f.add("pty-a", agenttools.OwnerAgent)
		tools := toolsOver(f)
		defer tools.Close()
		ask := func() *agenttools.ProblemsAnswer {
			r := must.Get(tools.Call(t.Context(), "problems", json.RawMessage(`{"terminalId":"pty-a"}`), agenttools.Caller{}))(t)
			return r.Answer.(*agenttools.ProblemsAnswer)
		}
		if x.print("a.c:1: error: x\n"); x.open() != 0 {
			t.Error("somebody reads before anybody has asked")
		}
		x.drop(16)
		x.print("b.c:2: error: x\n")
		if a := ask(); files(*a) != "/project/b.c:2" || a.Unseen != 16 {
			t.Errorf("after the beginning was gone: %+v", a)
		}
		x.print("c.c:3: error: x\n")
		synctest.Wait()
		x.drop(48)
		if a := ask(); files(*a) != "/project/b.c:2 /project/c.c:3" || a.Unseen != 16 {
			t.Errorf("after all of it was gone: %+v", a)
		}
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if x.open() != 1 {
			t.Error("nobody reads nine minutes after the last question")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if x.open() != 0 {
			t.Error("somebody reads ten minutes after the last question")
		}
		x.print("d.c:4: error: x\n")
		if a := ask(); files(*a) != "/project/b.c:2 /project/c.c:3 /project/d.c:4" {
			t.Errorf("asked again later: %+v", a)
		}
	})
}
