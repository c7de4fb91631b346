package adopt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// stand is a program with one pane, which tells pictures of it as the real program does
// according to its documents.
type stand struct {
	t    testing.TB
	dir  string
	vars map[string]string

	mu    sync.Mutex
	lines []string
	gone  bool
}

func newStand(t testing.TB) *stand {
	testkit.Unix(t, testkit.Programs)
	dir := must.Get(testkit.MakeHome())(t)
	t.Cleanup(func() { must.Do(t, testkit.RemoveHome(dir)) })
	s := &stand{t: t, dir: dir, vars: map[string]string{"PATH": dir + ":/usr/bin:/bin", "HOME": dir}}
	s.print("ready")
	return s
}

// print adds lines to the pane. Commands read them from files.
func (s *stand) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, lines...)
	s.write("full", strings.Join(s.lines, "\n")+"\n")
	s.write("screen", s.screen()+"\n")
}

func (s *stand) screen() string { return strings.Join(s.lines[max(0, len(s.lines)-standRows):], "\n") }

const standRows = 6 // of 40 columns

// write replaces a file at once.
func (s *stand) write(name, text string) {
	must.Do(s.t, os.WriteFile(filepath.Join(s.dir, name+".new"), []byte(text), 0o600))
	must.Do(s.t, os.Rename(filepath.Join(s.dir, name+".new"), filepath.Join(s.dir, name)))
}

// end ends the pane.
func (s *stand) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.write("panes", "[]")
}

func (s *stand) getenv(name string) string { return s.vars[name] }

// listen answers each connection's requests.
func (s *stand) listen(path string, answer func(conn net.Conn)) {
	must.Do(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	l := must.Get(net.Listen("unix", path))(s.t)
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answer(conn)
			}()
		}
	}()
}

const evilTitle = "a \x1b]0;title\x07\n%exit"

// kitty answers as kitty's remote control does.
func (s *stand) kitty() {
	socket := filepath.Join(s.dir, "kitty.sock")
	s.vars["KITTY_LISTEN_ON"] = "unix:" + socket
	s.listen(socket, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		text, err := in.ReadString('\\')
		if err != nil {
			return
		}
		var request struct {
			Command string `json:"cmd"`
			Payload struct {
				Match  string `json:"match"`
				Extent string `json:"extent"`
				ANSI   bool   `json:"ansi"`
			} `json:"payload"`
		}
		must.Do(s.t, json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(text, "\x1bP@kitty-cmd"), "\x1b\\")), &request))
		s.mu.Lock()
		defer s.mu.Unlock()
		data, answer := "", map[string]any{"ok": true}
		switch pane := map[string]any{"id": 7, "pid": os.Getpid(), "columns": 40, "lines": standRows, "title": evilTitle, "cwd": s.dir, "cmdline": []string{"npm", "run dev"}}; {
		case request.Command == "ls" && s.gone:
			data = "[]"
		case request.Command == "ls":
			data = string(must.Get(json.Marshal([]any{map[string]any{"tabs": []any{map[string]any{"windows": []any{pane}}}}}))(s.t))
		case request.Command != "get-text" || request.Payload.Match != "id:7" || !request.Payload.ANSI || s.gone:
			answer = map[string]any{"ok": false, "error": "No matching windows for expression: " + request.Payload.Match}
		case request.Payload.Extent == "all":
			data = strings.Join(s.lines, "\n")
		default:
			data = strings.ReplaceAll(s.screen(), "\n", "\r\n") + "\x1b[?25h\x1b[6;9H"
		}
		answer["data"] = data
		fmt.Fprintf(conn, "\x1bP@kitty-cmd%s\x1b\\", must.Get(json.Marshal(answer))(s.t))
	})
}

// herdr answers as herdr's socket does.
func (s *stand) herdr() {
	s.listen(filepath.Join(s.dir, ".config", "herdr", "herdr.sock"), func(conn net.Conn) {
		var request struct {
			ID     string         `json:"id"`
			Method string         `json:"method"`
			Params map[string]any `json:"params"`
		}
		if json.NewDecoder(conn).Decode(&request) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		var result any
		switch pane := map[string]any{"pane_id": "w1:p2", "tab_id": "w1:t1", "cwd": "/", "foreground_cwd": s.dir, "terminal_title": evilTitle}; {
		case request.Method == "pane.list" && s.gone:
			result = map[string]any{"type": "pane_list", "panes": []any{}}
		case request.Method == "pane.list":
			result = map[string]any{"type": "pane_list", "panes": []any{pane}}
		case s.gone || request.Params["pane_id"] != "w1:p2":
		case request.Method == "pane.layout":
			result = map[string]any{"layout": map[string]any{"panes": []any{map[string]any{"pane_id": "w1:p2", "rect": map[string]any{"x": 0, "y": 0, "width": 40, "height": standRows}}}}}
		case request.Method == "pane.read" && request.Params["source"] == "visible":
			result = map[string]any{"type": "pane_read", "read": map[string]any{"text": s.screen()}}
		case request.Method == "pane.read" && request.Params["source"] == "recent":
			result = map[string]any{"type": "pane_read", "read": map[string]any{"text": strings.Join(s.lines, "\n")}}
		}
		answer := map[string]any{"id": request.ID, "result": result}
		if result == nil {
			answer = map[string]any{"id": request.ID, "error": map[string]any{"code": "pane_not_found", "message": "pane not found"}}
		}
		must.Do(s.t, json.NewEncoder(conn).Encode(answer))
	})
}

// wezterm installs a command, and listens where a WezTerm does.
func (s *stand) wezterm() {
	s.install("wezterm")
	s.vars["XDG_RUNTIME_DIR"] = filepath.Join(s.dir, "run")
	s.write("panes", string(must.Get(json.Marshal([]any{map[string]any{"pane_id": 3, "title": evilTitle, "cwd": "file://host" + s.dir, "size": map[string]any{"rows": standRows, "cols": 40}}}))(s.t)))
	s.listen(filepath.Join(s.dir, "run", "wezterm", fmt.Sprintf("gui-sock-%d", os.Getpid())), func(net.Conn) {})
}

// zellij installs a command, and starts a process that looks like a session's server.
func (s *stand) zellij() {
	s.install("zellij")
	pane := map[string]any{"id": 4, "is_plugin": false, "exited": false, "title": evilTitle, "pane_command": "npm run dev", "pane_cwd": s.dir, "pane_content_rows": standRows, "pane_content_columns": 40}
	s.write("panes", string(must.Get(json.Marshal([]any{map[string]any{"id": 4, "is_plugin": true, "title": "tab-bar"}, pane}))(s.t)))
	server := exec.Command(filepath.Join(s.dir, "zellij"), "--server", filepath.Join(s.dir, "my session"))
	server.Env = append(os.Environ(), testkit.ForHang())
	must.Do(s.t, server.Start())
	s.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
}

func (s *stand) install(name string) {
	must.Do(s.t, os.Symlink(must.Get(os.Executable())(s.t), filepath.Join(s.dir, name)))
}

// commandOf is the command of a program that stands in for another one: it checks its
// arguments and prints a file from beside it.
func commandOf(argv []string) (code int, is bool) {
	dir, name := filepath.Split(argv[0])
	if path, err := exec.LookPath(name); dir == "" && err == nil {
		dir = filepath.Dir(path)
	}
	script := map[string]string{
		"zellij --session=my session action list-panes --json":                              "panes",
		"zellij --session=my session action dump-screen --pane-id terminal_4 --ansi":        "screen",
		"zellij --session=my session action dump-screen --pane-id terminal_4 --ansi --full": "full",
		"wezterm cli --no-auto-start list --format json":                                    "panes",
		"wezterm cli --no-auto-start get-text --pane-id 3 --escapes":                        "screen",
		"wezterm cli --no-auto-start get-text --pane-id 3 --escapes --start-line -1000":     "full",
	}
	switch {
	case name != "zellij" && name != "wezterm":
		return 0, false
	case len(argv) == 3 && argv[1] == "--server":
		testkit.Hang()
		return 0, true
	}
	line := strings.Replace(strings.Join(append([]string{name}, argv[1:]...), " "), "--session ", "--session=", 1)
	panes, _ := os.ReadFile(filepath.Join(dir, "panes"))
	text, err := os.ReadFile(filepath.Join(dir, script[line]))
	if err != nil || script[line] != "panes" && string(panes) == "[]" {
		fmt.Fprintln(os.Stderr, "no such pane or command:", line)
		return 1, true
	}
	_, _ = os.Stdout.Write(text)
	return 0, true
}

func TestPictures(t *testing.T) {
	for _, tt := range []struct {
		target string
		start  func(*stand)
	}{
		{"kitty:7", (*stand).kitty},
		{"herdr:w1.p2", (*stand).herdr},
		{"wezterm:DIR/run/wezterm/gui-sock-PID:3", (*stand).wezterm},
		{"zellij:my session:4", (*stand).zellij},
	} {
		t.Run(strings.Split(tt.target, ":")[0], func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			tt.start(s)
			options := adopt.Options{Getenv: s.getenv}
			want := strings.NewReplacer("DIR", s.dir, "PID", fmt.Sprint(os.Getpid())).Replace(tt.target)
			panes, faults := adopt.List(context.Background(), options)
			i := slices.IndexFunc(panes, func(p adopt.Pane) bool { return p.Target.String() == want })
			if i < 0 || len(faults) > 0 {
				t.Fatalf("the list is %+v, %v; want %s", panes, faults, want)
			}
			p := must.Get(adopt.Find(context.Background(), options, must.Get(adopt.ParseTarget(want))(t)))(t)
			if p != panes[i] || p.Exact || p.Dir != s.dir || p.Size != (pty.Size{Cols: 40, Rows: standRows}) || strings.ContainsAny(p.Title, "\x1b\x07\n") || p.Server.Pid == 0 {
				t.Errorf("the pane is %+v", p)
			}
			self := must.Get(os.Executable())(t)
			r := startTerminal(t, pty.Command{Path: self, Args: append([]string{self, verb, t.TempDir()}, adopt.ReaderArgs(p, false)...), Env: append(adopt.ReaderEnv(s.getenv, nonce), testkit.ForHang())})
			r.await(0, "ready")
			s.print("error \x1b[31min\x1b[m main.go", "\x1b]52;c;eA==\x07\x1b]633;P;Gap=unknown;"+nonce+"\x07\x1b[6n%exit")
			r.await(0, "%exit")
			var many []string
			for n := range 50 {
				many = append(many, fmt.Sprintf("line %d", n))
			}
			s.print(many...)
			r.await(0, "line 49")
			out := string(r.output())
			for _, bad := range []string{"\x1b]52", "\x1b[6n", gapMark} {
				if strings.Contains(out, bad) {
					t.Errorf("%q is in the output %q", bad, out)
				}
			}
			for _, once := range append(many, "ready", " main.go", "Size=40x6;"+nonce, "Cwd="+s.dir+";"+nonce) {
				if got := len(regexp.MustCompile(regexp.QuoteMeta(once)+"([\r\x1b\a]|$)").FindAllString(out, -1)); got != 1 {
					t.Errorf("%q is %d times in the output %q", once, got, out)
				}
			}
			for n := range 2000 {
				many = append(many, fmt.Sprintf("later %d", n))
			}
			s.print(many...)
			r.await(0, "later 1999")
			if got := strings.Count(string(r.output()), gapMark); got != 1 {
				t.Errorf("%d gaps, want one", got)
			}
			s.end()
			if code := r.awaitEnd(); code != 0 {
				t.Errorf("the reader ended with %d", code)
			}
			r.await(0, "[the pane has ended]")
		})
	}
}
