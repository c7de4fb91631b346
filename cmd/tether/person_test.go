package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/screen"
)

// newHome makes a home for this test, and ends the daemon in it afterwards.
func newHome(t *testing.T) string {
	t.Helper()
	home := must.Get(testkit.MakeHome())(t)
	token := must.Get(personToken(home))(t)
	t.Setenv("TETHER_HOME", home)
	t.Setenv(tokenVar, token)
	t.Setenv(allowRootVar, "1")
	t.Cleanup(func() { endDaemon(t, home) })
	return home
}

// environ is the environment of commands in a home that differs from this process's, as
// in tests that run concurrently.
func environ(home string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TETHER_HOME=") || strings.HasPrefix(v, tokenVar+"=") })
	return append(env, "TETHER_HOME="+home, tokenVar+"="+tokenOf(home), allowRootVar+"=1")
}

// command runs tether to its end and returns its output and exit status.
func command(t *testing.T, args ...string) (stdout string, status int) {
	t.Helper()
	c := exec.Command("tether", args...)
	out, err := c.Output()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), c.ProcessState.ExitCode()
}

// person is a person at a terminal at which tether runs.
type person struct {
	t   *testing.T
	pty *pty.PTY

	mu     sync.Mutex
	screen string // what was shown and not seen yet
	all    string // everything that was shown
	done   chan struct{}
}

// sit starts tether at a new terminal.
func sit(t *testing.T, args ...string) *person {
	t.Helper()
	return sitAt(t, pty.Command{Path: "tether", Args: append([]string{"tether"}, args...), Env: append(os.Environ(), "TERM=xterm")})
}

// sitAt starts any program at a new terminal.
func sitAt(t *testing.T, c pty.Command) *person {
	t.Helper()
	c.Size = pty.Size{Cols: 100, Rows: 30}
	p := must.Get(pty.Start(c))(t)
	s := &person{t: t, pty: p, done: make(chan struct{})}
	go s.look()
	t.Cleanup(func() { p.Close(); <-s.done; p.Wait() })
	return s
}

func (p *person) look() {
	defer close(p.done)
	buf := make([]byte, 4096)
	for {
		n, err := p.pty.Read(buf)
		p.mu.Lock()
		p.screen += string(buf[:n])
		p.all += string(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *person) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen
}

// everything returns all that was shown.
func (p *person) everything() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// sees waits until each text was shown, one after the other.
func (p *person) sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		ok := false
		for end := time.Now().Add(patience); !ok && time.Now().Before(end); <-time.After(2 * time.Millisecond) {
			p.mu.Lock()
			i := strings.Index(p.screen, text)
			if ok = i >= 0; ok {
				p.screen = p.screen[i+len(text):]
			}
			p.mu.Unlock()
		}
		if !ok {
			p.t.Fatalf("did not see %q in %q", text, p.shown())
		}
	}
}

func (p *person) types(text string) {
	p.t.Helper()
	must.Get(p.pty.Write([]byte(text)))(p.t)
}

// exits waits for the end of tether.
func (p *person) exits(want int) {
	p.t.Helper()
	if got := p.pty.Wait(); got.Code != want {
		p.t.Errorf("exited with %+v, want %d; the screen has %q", got, want, p.shown())
	}
	<-p.done
}

func TestAttachedRun(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	p := sit(t, "run", "--", "sh", "-c", `stty size; read x; echo "got:$x."; trap 'stty size; exit 4' WINCH; echo wait; while :; do sleep 0.01; done`)
	p.sees("30 100")
	p.types("hi ~.\r") // in the middle of a line it means nothing
	p.sees("got:hi ~..", "wait")
	must.Do(t, p.pty.Resize(pty.Size{Cols: 120, Rows: 40}))
	p.sees("40 120")
	p.exits(4)
}

func TestInterruptIsTheChilds(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	p := sit(t, "run", "--", "sh", "-c", `trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.01; done`)
	p.sees("ready")
	p.types("\x03")
	p.sees("interrupted")
	p.exits(5)
}

func TestDetachAndComeBack(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	p := sit(t, "run", "--name", "editor", "--", "sh", "-c", `printf '\033[?1049h\033[?25l\033[31mfull screen'; stty -echo; while read x; do echo "<$x>"; done`)
	p.sees("full screen")
	p.types("one\r")
	p.sees("<one>")
	p.types("~?")
	p.sees("detach, the terminal keeps running")
	p.types("~~two\r")
	p.sees("<~two>")
	p.types("~.")
	p.sees("\x1b[?25h", "\x1b[?1049l", "\x1b[0m", "tether attach pty-")
	p.exits(0)

	// It reads with the echo off, so after a second without output it awaits a secret.
	if out, _ := command(t, "ls"); !strings.Contains(out, "running") && !strings.Contains(out, "awaiting secret") {
		t.Errorf("after the detach:\n%s", out)
	}
	back := sit(t, "attach", "editor")
	back.sees("full screen", "<one>")
	back.types("three\r")
	back.sees("<three>")
	command(t, "kill", "editor")
	back.exits(143)
}

// Whatever a program has set on the person's terminal is undone when they leave, by each
// way to leave, and when it ends.
func TestLeavingUndoesWhatWasSet(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	const set = `\033[>1u\033[>4;2m\033[?9001h\033[4h\033[3;9r\033(0\033=\033[?5h\033[4 q\033[?2031h\033[?2048h\033]8;;http://x\033\\link\033]9;4;1;50\007` +
		`\033]11;#123456\007\033[?1049h\033[>15u\033[?1003h\033[1;31m\033[?25l`
	undone := []string{"\x1b[<1u", "\x1b[>4m", "\x1b[?9001l", "\x1b[4l", "\x1b[r", "\x1b(B", "\x1b[?66l", "\x1b[?5l", "\x1b[0 q", "\x1b[?2031l", "\x1b[?2048l", "\x1b]8;;\x1b\\",
		"\x1b]9;4;0\x1b\\", "\x1b]111\x1b\\", "\x1b[?1049l", "\x1b[?1003l", "\x1b[0m", "\x1b[?25h", "\x1b[23;0t"}
	for name, leave := range map[string]func(p *person){
		"~.":     func(p *person) { p.types("\r~."); p.sees("reattach with"); p.exits(0) },
		"hangup": func(p *person) { _ = p.pty.Signal("TERM"); p.exits(143) },
		"kill":   func(p *person) { command(t, "kill", "it"); p.exits(143) },
	} {
		p := sit(t, "run", "--private", "--name", "it", "--", "sh", "-c", `stty raw -echo; printf '`+set+`ready'; exec sleep 1000`)
		testkit.Eventually(t, patience, name+": ready", func() bool { return strings.Contains(p.shown(), "\x1b[?25lready") })
		leave(p)
		all := p.everything()
		var left screen.Modes
		_, _ = left.Write([]byte(all))
		if still := left.Restore(); len(still) > 0 {
			t.Errorf("%s: %q is still to be undone, of %q", name, still, all)
		}
		for _, text := range undone {
			if !strings.Contains(all[strings.Index(all, "ready"):], text) {
				t.Errorf("%s: %q is not in %q", name, text, all)
			}
		}
		_, _ = command(t, "kill", "it")
	}
}

// A program's question reaches the terminal that is attached when it is asked, once, and
// no terminal that is attached later or that tether does not read.
func TestQuestionsAreAskedOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	const asks = `printf '\033[?2004h\033[c\033]11;?\007ready'`
	p := sit(t, "run", "--private", "--name", "it", "--", "sh", "-c", asks+`; exec cat`)
	p.sees("\x1b[c", "\x1b]11;?\a", "ready")
	p.types("~.")
	p.exits(0)
	back := sit(t, "attach", "it")
	back.sees("ready")
	if all := back.everything(); strings.Contains(all, "\x1b[c") || strings.Contains(all, "]11;") {
		t.Errorf("who comes back is asked again: %q", all)
	}
	back.types("\x04")
	back.exits(0)
	piped := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", `true | tether run --private -- sh -c "` + asks + `"; tether run --private -- sh -c "` + asks + `" </dev/null`},
		Env: append(os.Environ(), "TERM=xterm")})
	piped.sees("ready", "ready")
	piped.exits(0)
	if all := piped.everything(); strings.Contains(all, "\x1b[c") || strings.Contains(all, "]11;") || strings.Count(all, "\x1b[?2004l") != 2 {
		t.Errorf("a terminal that tether does not read gets %q", all)
	}
}

// With nobody attached, the daemon answers a program's questions, and a file with
// questions types nothing into a shell. With two people attached, the program gets one
// answer.
func TestQuestionsAreAnsweredOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	const answer = `stty raw -echo; printf '\033[c'; got=$(dd bs=1 count=9 2>/dev/null | od -An -c | tr -d ' \n'); stty sane; echo "got $got"; `
	command(t, "run", "--detach", "--private", "--name", "alone", "--", "sh", "-c", answer+"exec sleep 1000")
	testkit.Eventually(t, patience, "the daemon's answer", func() bool {
		out, _ := command(t, "read", "alone")
		return strings.Contains(out, "got 033[?62;22")
	})
	file := filepath.Join(home, "questions")
	must.Do(t, os.WriteFile(file, []byte("\x1b[c\x1b[6n\x1b]11;?\a\x1b[?u\x1b[5n"), 0o600))
	command(t, "run", "--detach", "--private", "--name", "file", "--", "sh", "-c", "cat "+file+"; echo behind; stty raw -echo; exec cat -v")
	testkit.Eventually(t, patience, "the file is shown", func() bool {
		out, _ := command(t, "read", "file")
		return strings.Contains(out, "behind")
	})
	a := sit(t, "run", "--private", "--name", "both", "--", "sh", "-c", `stty raw -echo; printf 'ready'; exec cat -v`)
	a.sees("ready")
	b := sit(t, "attach", "both")
	b.sees("ready")
	b.types("\x1b[?2;2c")
	a.types("\x1b[?1;1c")
	a.sees("^[[?1;1c")
	b.types("x") // from now on the second one answers
	a.sees("x")
	a.types("\x1b[?3;3c")
	b.types("\x1b[?4;4c")
	a.sees("^[[?4;4c")
	if all := a.everything(); strings.Contains(all, "2;2c") || strings.Contains(all, "3;3c") {
		t.Errorf("two terminals have answered: %q", all)
	}
	if out, _ := command(t, "read", "file"); strings.Contains(out, "^[") {
		t.Errorf("a file with questions was answered: %q", out)
	}
	for _, name := range []string{"alone", "file", "both"} {
		command(t, "kill", name)
	}
	a.exits(143)
	b.exits(143)
}

// ~. works whatever form of keys the program has switched on. The bytes are those that
// kitty, Ghostty and WezTerm, xterm and Windows Terminal send for Enter, ~ and a dot on a
// US keyboard.
func TestDetachInAnyFormOfKeys(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	for name, c := range map[string]struct {
		set  string
		keys []string
	}{
		"disambiguated":      {`\033[>1u`, []string{"\r", "~", "."}},
		"with releases":      {`\033[>7u`, []string{"\r", "~", "\x1b[96:126;2:3u", "."}},
		"all keys as codes":  {`\033[>15u`, []string{"\x1b[13u", "\x1b[13;1:3u", "\x1b[57441;2u", "\x1b[96:126;2u", "\x1b[96:126;2:3u", "\x1b[57441;1:3u", "\x1b[46u"}},
		"codes with text":    {`\033[>31u`, []string{"\x1b[13u", "\x1b[96:126;2;126u", "\x1b[46;1;46u"}},
		"codes alone":        {`\033[>8u`, []string{"\x1b[13u", "\x1b[96;2u", "\x1b[46u"}},
		"first key":          {`\033[>15u`, []string{"\x1b[96:126;2u", "\x1b[46u"}},
		"modifyOtherKeys":    {`\033[>4;2m`, []string{"\r", "\x1b[27;2;126~", "."}},
		"win32 input":        {`\033[?9001h`, []string{"\x1b[13;28;13;1;0;1_", "\x1b[13;28;13;0;0;1_", "\x1b[192;41;126;1;16;1_", "\x1b[192;41;126;0;16;1_", "\x1b[190;52;46;1;0;1_"}},
		"mouse and focus":    {`\033[?1003;1006;1004h`, []string{"\r", "\x1b[<35;3;4M", "~", "\x1b[<35;3;5M\x1b[I", "."}},
		"alternate screen":   {`\033[?1049h\033[>15u`, []string{"\x1b[13u", "\x1b[96:126;2u", "\x1b[46u"}},
		"long ago, and back": {`\033[>15u`, nil},
	} {
		t.Log(name)
		p := sit(t, "run", "--private", "--name", "it", "--", "sh", "-c", `stty raw -echo; printf '`+c.set+`ready'; exec cat >/dev/null`)
		p.sees("ready")
		for _, k := range c.keys {
			p.types(k)
		}
		if c.keys == nil {
			p.types("\x1b[13u\x1b[96:126;2u\x1b[46u")
			p.exits(0)
			p = sit(t, "attach", "it")
			p.sees("\x1b[>15u", "ready")
			p.types("\x1b[96:126;2u\x1b[46u")
		}
		p.sees("detached from it")
		p.exits(0)
		command(t, "kill", "it")
	}
}

// A line of a bracketed paste that begins with ~. neither detaches, nor does the rest of
// the paste reach the person's own shell.
func TestPastesDoNotDetach(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	p := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", `tether run --private --name it -- sh -c 'stty raw -echo; printf "\033[?2004hready"; exec cat'; echo own shell is back; while read -r x; do echo "own shell: $x"; done`},
		Env: append(os.Environ(), "TERM=xterm")})
	p.sees("ready")
	p.types("\x1b[200~notes\r~.config is my folder\r") // it comes in two reads, as long ones do
	p.sees("~.config is my folder")
	p.types("touch x\r\x1b[201~")
	p.sees("touch x\r\x1b[201~")
	p.types("\r~.")
	p.sees("detached from it")
	p.sees("own shell is back") // until then, tether may read what is typed
	p.types("mine\r")
	p.sees("own shell: mine")
	if all := p.everything(); strings.Contains(all, "own shell: touch") || strings.Contains(all, "own shell: notes") {
		t.Errorf("the paste reached the person's shell: %q", all)
	}
}

// Each message of tether begins a new line, also behind a prompt.
func TestLeavingBehindAPrompt(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	p := sit(t, "run", "--private", "--", "sh", "-c", `printf 'prompt> '; exec sleep 1000`)
	p.sees("prompt> ")
	p.types("~.")
	p.sees("\r\n", "tether: detached from", "reattach with")
	p.exits(0)
}

func TestHangupLeavesTheTerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	for _, args := range [][]string{
		{"tether", "run", "--name", "kept", "--", "sh", "-c", `echo ready; exec sleep 1000`},
		// A script gets the signal, and waits for tether, which does not.
		{"sh", "-c", `trap 'exit 1' HUP; tether run -- sh -c 'echo ready; exec sleep 1000'; true`},
	} {
		p := sitAt(t, pty.Command{Path: args[0], Args: args, Env: append(os.Environ(), "TERM=xterm")})
		p.sees("ready")
		p.pty.Close()
		p.pty.Wait()
	}
	testkit.Eventually(t, patience, "nobody is attached to what still runs", func() bool {
		out, _ := command(t, "ls", "--json")
		return strings.Contains(out, `"attached": 0`) && !strings.Contains(out, `"exit"`)
	})
}

func TestTwoPeopleAtOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	a := sit(t, "run", "--name", "shared", "--", "cat")
	a.types("first\r")
	a.sees("first", "first")
	b := sit(t, "attach", "shared")
	b.sees("first", "first")
	b.types("second\r")
	a.sees("second", "second")
	b.sees("second", "second")
	b.types("~.")
	b.exits(0)
	a.types("\x04")
	a.exits(0)
}

// A terminal fits the windows of all who are attached, and grows again when the one with
// the smallest leaves.
func TestSmallestWindow(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	a := sit(t, "run", "--name", "shared", "--", "sh", "-c", `trap 'echo "<$(stty size)>"' WINCH; echo ready; while :; do sleep 0.01; done`)
	a.sees("ready")
	b := sit(t, "attach", "shared")
	b.sees("ready")
	must.Do(t, b.pty.Resize(pty.Size{Cols: 50, Rows: 60}))
	a.sees("<30 50>")
	must.Do(t, a.pty.Resize(pty.Size{Cols: 200, Rows: 20}))
	b.sees("<20 50>")
	b.types("~.")
	b.exits(0)
	a.sees("<20 200>")
	command(t, "kill", "shared")
	a.exits(143)
}

func TestDaemonEnds(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	p := sit(t, "run", "--", "sh", "-c", `echo ready; exec sleep 1000`)
	p.sees("ready")
	command(t, "stop")
	p.sees("the daemon closed the connection: the daemon is shutting down")
	p.exits(254)
}

func TestTokenIsNotShown(t *testing.T) {
	testkit.Unix(t, testkit.Bytes)
	newHome(t)
	h := &testHost{}
	must.Do(t, h.start("typed-canary"))
	defer h.stop()

	p := sit(t, "pair", "ws://"+h.address)
	p.sees("token (empty if the host needs none): ")
	awaitNoEcho(t, p)
	p.types("typed-canary\r")
	p.sees("paired with local")
	p.exits(0)
	if strings.Contains(p.shown(), "canary") {
		t.Errorf("the token was shown: %q", p.shown())
	}

	again := sit(t, "pair", "ws://"+h.address)
	again.sees("token")
	awaitNoEcho(t, again)
	again.types("\x03")
	again.exits(130)
}

// awaitNoEcho waits until the terminal does not echo.
func awaitNoEcho(t *testing.T, p *person) {
	t.Helper()
	device, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", p.pty.Pid()))
	if err != nil {
		p.awaitSilence()
		return
	}
	testkit.Eventually(t, patience, "the terminal's echo is off", func() bool {
		modes, err := exec.Command("stty", "-F", device, "-a").Output()
		return err == nil && strings.Contains(string(modes), " -echo ")
	})
}

// awaitSilence is for systems that do not name the terminal's device.
func (p *person) awaitSilence() {
	p.t.Helper()
	testkit.Eventually(p.t, patience, "the terminal is silent", func() bool {
		for range 10 { // one look may miss an echo that is on its way
			was := len(p.shown())
			p.types("x\x15") // and takes it back
			<-time.After(10 * time.Millisecond)
			if len(p.shown()) != was {
				return false
			}
		}
		return true
	})
}

// A recording is played as it was, and leaves the person's terminal as it found it.
func TestPlay(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	name := filepath.Join(t.TempDir(), "x.cast")
	cast := `{"version":3,"term":{"cols":200,"rows":24}}
[0.01,"o","\u001b[?1049h\u001b[?25lfull screen"]
[60,"o","later"]
`
	must.Do(t, os.WriteFile(name, []byte(cast), 0o600))
	p := sit(t, "play", "--idle-limit", "10ms", name)
	p.sees("recorded at 200x24, your window is 100x30", "full screen", "later", "\x1b[?25h", "\x1b[?1049l")
	p.exits(0)
	p = sit(t, "play", name)
	p.sees("full screen")
	p.types("\x03")
	p.sees("\x1b[?1049l")
	p.exits(exitInterrupted)
}

// Colours are for terminals whose owner wants them.
func TestColours(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	command(t, "run", "--private", "--", "true")
	for _, c := range []struct {
		env  string
		want bool
	}{{"A=1", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		p := sitAt(t, pty.Command{Path: "tether", Args: []string{"tether", "approvals"}, Env: append([]string{c.env, "TERM=xterm", "NO_COLOR="}, os.Environ()...)}) // the first counts
		p.exits(0)
		<-p.done
		if got := strings.Contains(p.shown(), "\x1b["); got != c.want || !strings.Contains(p.shown(), "no pending or active approvals") {
			t.Errorf("with %s: %q", c.env, p.shown())
		}
	}
}
