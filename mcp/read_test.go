package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/mcp"
	"tether/vocab"
)

// lines prints n numbered lines.
func lines(x *fakeTerminal, n int, format string) {
	for i := range n {
		x.print(fmt.Sprintf(format+"\r\n", i))
	}
}

func TestReadHistoryIsBounded(t *testing.T) {
	f, x := withTerminal("pty-a")
	lines(x, 10_000, "line %05d of the output")
	session := one(t, f)
	r := read(t, session, m{"terminalId": "pty-a"})
	if len(r.History) > 16_000 || len(r.History) < 14_500 || !r.Truncated {
		t.Errorf("%d bytes, truncated %t", len(r.History), r.Truncated)
	}
	if !strings.HasPrefix(r.History, "line ") || !strings.HasSuffix(r.History, "line 09999 of the output\n") {
		t.Errorf("it begins %.20q: not at a line", r.History)
	}
	if r.Cursor != x.Info().End {
		t.Errorf("cursor %d, want %d", r.Cursor, x.Info().End)
	}
	// A line that is longer than the largest answer is cut at a character.
	y := f.add("pty-b", agenttools.OwnerUser)
	y.print(strings.Repeat("世", 50_000))
	r = read(t, session, m{"terminalId": "pty-b"})
	if len(r.History) > 16_000 || len(r.History) < 15_000 || !utf8.ValidString(r.History) || !r.Truncated {
		t.Errorf("a long line: %d bytes, valid %t, truncated %t", len(r.History), utf8.ValidString(r.History), r.Truncated)
	}
}

// The newest text begins at a line. If the output ends within a sequence, the cursor is
// the start of the sequence, whatever was left out before the text.
func TestCursorBeforeAnUnfinishedSequence(t *testing.T) {
	f, x := withTerminal("pty-a")
	lines(x, 10_000, "line %05d of the output")
	end := x.Info().End
	x.print("\x1b[3")
	session := one(t, f)
	r := read(t, session, m{"terminalId": "pty-a"})
	if r.Cursor != end {
		t.Errorf("cursor %d, want %d", r.Cursor, end)
	}
	x.print("1mred\x1b[m")
	if on := read(t, session, m{"terminalId": "pty-a", "since": r.Cursor}); on.History != "red" {
		t.Errorf("read on: %.100q", on.History)
	}
}

// An answer without a size is as long as its client shows it whole, and has the newest
// whole lines, whatever else is in it.
func TestReadFitsItsClient(t *testing.T) {
	n := 0
	for name, line := range map[string]string{"plain": "line %d of a log", "quotes": `{"line":%d,"text":"\"\\"}`, "colours": "\x1b[31mline\x1b[0m\x1b[1m %d", "wide": "行 %d 世界", "empty": ""} {
		f, x := withTerminal("pty-a")
		for n := range 60 {
			start := x.Info().End
			lines(x, 100, line+strings.Repeat(" ", n%2))
			x.finish(vocab.Command{N: n + 1, Line: new(strings.Repeat(`"echo" `, 60)), Start: start, End: x.Info().End})
		}
		for client, most := range map[string]int{"test": 16_000, "codex-mcp-client": 10_000, "@cline/core": 5_000} {
			session, _ := connectAs(t, newServer(t, mcp.Options{Tools: toolsOver(f)}), sdk.NewClient(&sdk.Implementation{Name: client, Version: "1"}, nil))
			for _, args := range []m{{}, {"tail": 3000}, {"grep": "."}, {"format": "raw"}, {"since": 0}, {"format": "raw", "since": 0}, {"format": "screen"}, {"format": "digest"}} {
				if n++; n%testkit.Load(1, 3) > 0 { // with the race detector a third, each time others
					continue
				}
				t.Run(fmt.Sprint(client, name, args), func(t *testing.T) {
					args["terminalId"] = "pty-a"
					r := must.Get(session.CallTool(t.Context(), &sdk.CallToolParams{Name: "read_terminal", Arguments: args}))(t)
					text := r.Content[0].(*sdk.TextContent).Text
					structured, _ := json.Marshal(r.StructuredContent)
					var got readAnswer
					unmarshal(t, text, &got)
					if n := len(text) + len(structured) - len("null"); n > most || got.Truncated && n < most*3/4 {
						t.Errorf("%d bytes, with %d of %d commands", n, len(got.Commands), 50)
					}
					if all, _ := json.Marshal(r); client == "@cline/core" && len(all) > 8_000 {
						t.Errorf("the result has %d bytes", len(all))
					}
					if args["since"] == nil && args["format"] != "digest" && got.Truncated && (!strings.Contains(got.Hint, "maxBytes") || got.Cursor != x.Info().End) {
						t.Errorf("hint %q, cursor %d of %d", got.Hint, got.Cursor, x.Info().End)
					}
					if args["since"] != nil && !got.More {
						t.Error("there is no more")
					}
				})
			}
		}
	}
}

// Control sequences do not count towards the size of an answer.
func TestReadLooksFurtherBackForText(t *testing.T) {
	f, x := withTerminal("pty-a")
	noise := strings.Repeat("\x1b[38;2;1;2;3m", 20)
	for i := range 1500 {
		x.print(fmt.Sprintf("%sline %04d%s\r\n", noise, i, noise))
	}
	r := read(t, one(t, f), m{"terminalId": "pty-a", "maxBytes": 16_000})
	if n := strings.Count(r.History, "\n"); n != 1500 || r.Truncated {
		t.Errorf("%d lines, truncated %t; want all of them", n, r.Truncated)
	}
}

func TestReadOptions(t *testing.T) {
	f, x := withTerminal("pty-a")
	x.print("\x1b[1mbuild\x1b[0m started\r\nwarning: a\r\n10%\r50%\r100%\r\nWARNING: b\r\ndone\r\n$ ")
	session := one(t, f)
	for _, c := range []struct {
		name string
		args m
		want string
	}{
		{"all", m{}, "build started\nwarning: a\n100%\nWARNING: b\ndone\n$ "},
		{"tail", m{"tail": 2}, "done\n$ "},
		{"tail of more than there is", m{"tail": 100}, "build started\nwarning: a\n100%\nWARNING: b\ndone\n$ "},
		{"grep", m{"grep": "warning"}, "warning: a\n"},
		{"grep without case", m{"grep": "(?i)WARN"}, "warning: a\nWARNING: b\n"},
		{"grep at the borders of a line", m{"grep": "^d.*e$"}, "done\n"},
		{"grep and tail", m{"grep": "(?i)warn", "tail": 1}, "WARNING: b\n"},
		{"grep of nothing", m{"grep": "xyz"}, ""},
		{"few bytes", m{"maxBytes": 10}, "done\n$ "},
		{"fewer", m{"maxBytes": 1}, " "},
		{"raw", m{"format": "raw", "tail": 6}, "\x1b[1mbuild\x1b[0m started\r\nwarning: a\r\n10%\r50%\r100%\r\nWARNING: b\r\ndone\r\n$ "},
		{"screen", m{"format": "screen"}, "build started\nwarning: a\n100%\nWARNING: b\ndone\n$"},
		{"the end of the screen", m{"format": "screen", "tail": 1}, "$"},
		{"since the beginning", m{"since": 0}, "build started\nwarning: a\n100%\nWARNING: b\ndone\n$ "},
		{"since the end", m{"since": x.Info().End}, ""},
		{"since somewhere", m{"since": x.Info().End - 8}, "done\n$ "},
		{"since and tail", m{"since": 0, "tail": 1}, "$ "},
		{"since and grep", m{"since": 30, "grep": "(?i)warn"}, "WARNING: b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.args["terminalId"] = "pty-a"
			r := read(t, session, c.args)
			if r.History != c.want {
				t.Errorf("%v\ngot  %q\nwant %q", c.args, r.History, c.want)
			}
			if cut := c.args["maxBytes"] != nil; r.Truncated != cut || r.More {
				t.Errorf("%v: truncated %t, more %t", c.args, r.Truncated, r.More)
			}
			if r.Cursor != x.Info().End {
				t.Errorf("cursor %d, want the end, %d", r.Cursor, x.Info().End)
			}
		})
	}
}

func TestReadScreen(t *testing.T) {
	f, x := withTerminal("pty-a")
	x.print("shell line\r\n\x1b[?1049h\x1b[2J\x1b[1;1H\x1b[7mtop\x1b[m\x1b[3;5HPID 7\x1b[5;2H")
	session := one(t, f)
	r := read(t, session, m{"terminalId": "pty-a", "format": "screen"})
	if r.History != "top\n\n    PID 7" || r.Screen == nil || r.Screen.Cols != 80 || r.Screen.Rows != 24 || r.Screen.CursorCol != 1 || r.Screen.CursorRow != 4 {
		t.Errorf("%+v, screen %+v", r, r.Screen)
	}
	x.add(agenttools.Event{Resized: &[2]int{40, 10}})
	x.print("\x1b[1;1H\x1b[2Jsmall")
	if r = read(t, session, m{"terminalId": "pty-a", "format": "screen"}); r.History != "small" || r.Screen.Cols != 40 || r.Screen.Rows != 10 {
		t.Errorf("after a resize: %q on %+v", r.History, r.Screen)
	}
}

// A client that continues with the cursor gets all text once, however the output was cut.
// Half a character or sequence waits for its rest.
func TestReadOn(t *testing.T) {
	f, x := withTerminal("pty-a")
	session := one(t, f)
	var got strings.Builder
	cursor := int64(0)
	for _, piece := range []string{"one ", "two\r\n\x1b[3", "1mred\x1b[0", "m\r\n世", "界\xe4", "\xb8\x96\r\n", "", "end\r\n"} {
		if piece != "" {
			x.print(piece)
		}
		r := read(t, session, m{"terminalId": "pty-a", "since": cursor})
		got.WriteString(r.History)
		cursor = r.Cursor
	}
	if want := "one two\nred\n世界世\nend\n"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

func TestReadOnInPages(t *testing.T) {
	f, x := withTerminal("pty-a")
	lines(x, 5000, "\x1b[3%dmline\x1b[0m with some more text\ttab")
	session := one(t, f)
	want := read(t, session, m{"terminalId": "pty-a", "maxBytes": 1 << 20}).History
	var got strings.Builder
	pages := 0
	for cursor, more := int64(0), true; more; pages++ {
		r := read(t, session, m{"terminalId": "pty-a", "since": cursor, "maxBytes": 8000})
		if len(r.History) > 8000 || r.Truncated || r.More && !strings.HasSuffix(r.History, "\n") {
			t.Fatalf("page %d: %d bytes, truncated %t, ends with %.10q", pages, len(r.History), r.Truncated, r.History[max(len(r.History)-10, 0):])
		}
		if r.More && r.Cursor <= cursor {
			t.Fatalf("page %d does not move on from %d", pages, cursor)
		}
		got.WriteString(r.History)
		cursor, more = r.Cursor, r.More
	}
	if got.String() != want || pages < 10 {
		t.Errorf("%d pages with %d bytes, want %d bytes", pages, got.Len(), len(want))
	}
}

// A sequence that never ends must not stop a reader for ever.
func TestReadOnBehindEndlessSequence(t *testing.T) {
	f, x := withTerminal("pty-a")
	x.print("a\r\n\x1b]0;" + strings.Repeat("x", 200_000))
	session := one(t, f)
	cursor, pages := int64(0), 0
	for more := true; more; pages++ {
		r := read(t, session, m{"terminalId": "pty-a", "since": cursor})
		if r.More && r.Cursor <= cursor || pages > 10 {
			t.Fatalf("page %d does not move on from %d", pages, cursor)
		}
		cursor, more = r.Cursor, r.More
	}
}

func TestReadOfAForgottenTerminal(t *testing.T) {
	f, x := withTerminal("pty-a")
	lines(x, 100, "line %02d")
	x.drop(505) // in the middle of a line
	session := one(t, f)
	r := read(t, session, m{"terminalId": "pty-a", "since": 9})
	if !r.Truncated || !strings.HasSuffix(r.History, "line 99\n") || strings.Contains(r.History, "line 55") {
		t.Errorf("since before what is kept: truncated %t, %.20q", r.Truncated, r.History)
	}
	r = read(t, session, m{"terminalId": "pty-a"})
	if !r.Truncated || !strings.HasPrefix(r.History, "line 57\n") {
		t.Errorf("all: truncated %t, %.20q", r.Truncated, r.History)
	}
	if r = read(t, session, m{"terminalId": "pty-a", "tail": 3}); r.Truncated || strings.Count(r.History, "\n") != 3 {
		t.Errorf("a tail that is there: truncated %t, %q", r.Truncated, r.History)
	}
}

func TestReadCommands(t *testing.T) {
	f, x := withTerminal("pty-a")
	code := 1
	x.print("$ ls\r\n")
	start := x.Info().End
	x.print("file\r\n")
	x.finish(vocab.Command{N: 1, Line: new("ls"), Exit: new(int), Start: start, End: x.Info().End})
	x.print("$ false\r\n")
	middle := x.Info().End
	x.finish(vocab.Command{N: 2, Line: new("false"), Exit: &code, Start: middle, End: middle})
	session := one(t, f)
	all := read(t, session, m{"terminalId": "pty-a"})
	want := []shownCommand{{N: 1, Line: "ls", ExitCode: new(int), Start: start, End: start + 6}, {N: 2, Line: "false", ExitCode: &code, Start: middle, End: middle}}
	if d := cmp.Diff(want, all.Commands); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
	if r := read(t, session, m{"terminalId": "pty-a", "since": start + 6}); len(r.Commands) != 1 || r.Commands[0].N != 2 {
		t.Errorf("since the first: %+v", r.Commands)
	}
	for i := range 100 {
		x.finish(vocab.Command{N: 3 + i, Start: middle, End: middle})
	}
	if r := read(t, session, m{"terminalId": "pty-a"}); len(r.Commands) != 50 || r.Commands[49].N != 102 {
		t.Errorf("%d commands, the last %+v; want the newest 50", len(r.Commands), r.Commands[len(r.Commands)-1])
	}
}

// The last output and the exit code can be read after the end.
func TestReadAfterCrash(t *testing.T) {
	f := &fakeTerminals{}
	x := f.add("pty-a", agenttools.OwnerAgent)
	x.print("panic: oh no\r\ngoroutine 1 [running]:\r\n")
	x.exit(vocab.Exit{Code: 2, Reason: "exited"})
	r := read(t, one(t, f), m{"terminalId": "pty-a"})
	if r.History != "panic: oh no\ngoroutine 1 [running]:\n" || !r.Exited || r.ExitCode == nil || *r.ExitCode != 2 || r.Reason != "exited" {
		t.Errorf("%+v", r)
	}
}
