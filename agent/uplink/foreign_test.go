package uplink_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/term"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// foreignStreams are recorded streams of shells whose integration is not ours: files in
// testdata, or among the cases of package shellint.
var foreignStreams = []string{
	"vsc-bash-01-basic", "vsc-zsh-01-basic", "vsc-fish-01-basic", "peer-kitty-bash", "peer-ghostty-bash", "peer-iterm2-zsh", "nat-fish4-01", "nat-nu-01-osc133",
}

// recorded is a stream and the commands in it, as one line of text.
func recorded(t *testing.T, name string) (stream, commands string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	raw, err := os.ReadFile(file + ".bin")
	if errors.Is(err, fs.ErrNotExist) {
		file = filepath.Join("..", "..", "shellint", "testdata", "cases", name)
		raw, err = os.ReadFile(file + ".bin")
	}
	must.Do(t, err)
	about := must.Get(os.ReadFile(file + ".json"))(t)
	var want struct {
		Expect struct {
			Commands []struct {
				Line *string `json:"command_line"`
				Exit *int64
			}
		}
	}
	must.Do(t, json.Unmarshal(about, &want))
	for _, c := range want.Expect.Commands {
		line := ""
		if c.Line != nil {
			line = *c.Line
		}
		commands += commandText(line, c.Exit, true)
	}
	return string(raw), commands
}

func commandText(line string, exit *int64, complete bool) string {
	code := "?"
	if exit != nil {
		code = fmt.Sprint(*exit)
	}
	if !complete {
		code = "runs"
	}
	return fmt.Sprintf("[%s: %s]", line, code)
}

// shownCommands are the commands that an observer sees: the unverified ones and the
// others.
func shownCommands(s ahp.TerminalState) (foreign, ours string) {
	for _, p := range s.Content {
		switch {
		case p.Type != ahp.PartCommand:
		case p.Meta.IsUnverified():
			foreign += commandText(p.CommandLine, p.ExitCode, p.IsComplete)
		default:
			ours += commandText(p.CommandLine, p.ExitCode, p.IsComplete)
		}
	}
	return foreign, ours
}

// Commands of shells that mark by themselves reach observers, marked as unverified: where
// no signed integration speaks, and within a signed command as in ssh, which stays open.
func TestForeignIntegrationsReachObservers(t *testing.T) {
	for _, name := range foreignStreams {
		t.Run(name, func(t *testing.T) {
			stream, want := recorded(t, name)
			if want == "" {
				t.Fatal("the stream has no commands")
			}
			for _, within := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, host.Options{}, nil)
					w.online()
					spec, ours := term.Spec{}, ""
					if within {
						spec.Nonce, ours = "n", "[ssh box: runs]"
					}
					_, child := w.spawn(spec)
					if within {
						child.Print("\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;ssh box;n\a\x1b]633;C;n\a")
					}
					prints(child, stream)
					if foreign, signed := shownCommands(w.only()); foreign != want || signed != ours {
						t.Errorf("within a signed command: %t\n got %s and %s\nwant %s and %s", within, foreign, signed, want, ours)
					}
					if !within {
						return
					}
					prints(child, "bye\r\n\x1b]633;D;3;n\a\x1b]633;A;n\a$ ")
					if _, signed := shownCommands(w.only()); signed != "[ssh box: 3]" {
						t.Errorf("in the end: %s", signed)
					}
				})
			}
		})
	}
}

// A command within another one that began in a part that was lost is made up for, as the
// outer one is.
func TestForeignCommandsBehindALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		h, child := w.spawn(term.Spec{Nonce: "n"})
		prints(child, "\x1b]633;A;n\a$ \x1b]633;E;ssh box;n\a\x1b]633;C;n\ahello\r\n")
		w.cut(true)
		synctest.Wait()
		child.Print("\x1b]633;A\a> \x1b]633;B\a\x1b]633;E;make\a\x1b]633;C\a")
		for i := range 100 {
			child.Print(strings.Repeat(fmt.Sprintf("line %d\r\n", i), 200))
		}
		synctest.Wait()
		if lost := h.Info().Bytes - h.Info().Retained; lost == 0 {
			t.Fatal("nothing was lost: the test proves nothing")
		}
		w.cut(false)
		w.online()
		synctest.Wait()
		if foreign, ours := shownCommands(w.only()); foreign != "[make: runs]" || ours != "[ssh box: runs]" {
			t.Errorf("behind the loss: %s and %s", foreign, ours)
		}
		prints(child, "\x1b]633;D;2\a\x1b]633;A\a> \x1b]633;D;0;n\a\x1b]633;A;n\a")
		if foreign, ours := shownCommands(w.only()); foreign != "[make: 2]" || ours != "[ssh box: 0]" {
			t.Errorf("in the end: %s and %s", foreign, ours)
		}
	})
}

// With IgnoreUnsigned, marks without the nonce make no commands.
func TestForeignIntegrationsCanBeIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, host.Options{}, term.Options{IgnoreUnsigned: true}, nil)
		w.online()
		_, child := w.spawn(term.Spec{})
		stream, _ := recorded(t, foreignStreams[0])
		prints(child, stream)
		if s := w.only(); len(s.Content) != 1 || s.SupportsCommandDetection {
			t.Errorf("%d parts, detection %t", len(s.Content), s.SupportsCommandDetection)
		}
	})
}
