package terminals

import (
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A program is a terminal program, and how it is told to run argv in a window of 80
// columns and 24 rows.
type program struct {
	name string
	argv func(argv []string) []string
	// clipboard says that it lets programs write the clipboard, and with it graphics are
	// pictures of the forms that it shows.
	clipboard bool
	bell      bool // it runs a command that writes a line to the file bell
	graphics  string
	up        string // the key that scrolls back
	paste     string // the key that pastes the selection
}

var programs = []program{
	{name: "xterm", clipboard: true, graphics: sixel, up: "shift+Prior", paste: "shift+Insert", argv: func(argv []string) []string {
		return slices.Concat([]string{"xterm", "-ti", "vt340", "-geometry", "80x24", "-fa", "DejaVu Sans Mono", "-fs", "10", "-xrm", "XTerm*allowWindowOps: true", "-xrm", "XTerm*internalBorder: 0", "-e"}, argv)
	}},
	{name: "kitty", clipboard: true, bell: true, graphics: kittyImage, up: "ctrl+shift+z", paste: "shift+Insert", argv: func(argv []string) []string {
		args := []string{"kitty", "--config", "NONE"}
		for _, set := range []string{"remember_window_size=no", "initial_window_width=80c", "initial_window_height=24c", "cursor_blink_interval=0", "shell_integration=disabled",
			"update_check_interval=0", `command_on_bell=sh -c "echo rung >>$R/bell"`, "confirm_os_window_close=0", "clipboard_control=write-clipboard write-primary read-clipboard read-primary"} {
			args = append(args, "-o", set)
		}
		return append(args, argv...)
	}},
	{name: "sakura", up: "shift+Prior", paste: "shift+Insert", argv: func(argv []string) []string {
		return slices.Concat([]string{"sakura", "-c", "80", "-r", "24", "-e"}, argv)
	}},
}

// A window shows a shell.
type window struct {
	program
	stage *stage
	other *window // of the same program
	d     *display
	dir   string // has the files that the shell writes
	id    string
	shell string          // its process, and its id in tether
	at    image.Rectangle // on the screen
	n     int             // differs from that of any other window
	ended chan error      // what the program returned; 1 slot
	cmd   *exec.Cmd
}

// open opens a window of p with the shell, which is tether's in a window of tether, at x.
func (s *stage) open(t *testing.T, d *display, p program, tether bool, x int) *window {
	t.Helper()
	w := &window{program: p, stage: s, d: d, dir: t.TempDir(), n: int(s.windows.Add(1)), ended: make(chan error, 1)}
	argv := []string{"bash"}
	if tether {
		argv = slices.Concat([]string{s.tether, "shell", "--window", "--"}, argv)
	}
	argv = p.argv(argv)
	w.cmd = exec.Command(argv[0], argv[1:]...)
	w.cmd.Dir = s.files
	w.cmd.Env = append(slices.Clone(s.env), "DISPLAY="+d.name, "R="+w.dir)
	out := must.Get(os.Create(filepath.Join(w.dir, "output")))(t)
	defer out.Close()
	w.cmd.Stdout, w.cmd.Stderr = out, out
	known := strings.Fields(d.windows())
	must.Do(t, w.cmd.Start())
	go func() { w.ended <- w.cmd.Wait() }()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		if t.Failed() {
			said, _ := os.ReadFile(out.Name())
			t.Logf("%s, %v, printed %q", p.name, w.cmd.ProcessState, said)
		}
	})
	testkit.Eventually(t, testkit.Patience, "a window of "+p.name, func() bool {
		for _, id := range strings.Fields(d.windows()) {
			if !slices.Contains(known, id) {
				w.id = id
			}
		}
		return w.id != ""
	})
	w.shell = w.result(t, "started")
	must.Get(d.do("xdotool", "windowmove", "--sync", w.id, fmt.Sprint(x), "0"))(t)
	w.at = must.Get(d.place(w.id))(t)
	return w
}

// windows are the ids of all windows with a name.
func (d *display) windows() string {
	out, _ := d.do("xdotool", "search", "--onlyvisible", "--name", ".+") // an error if there is none
	return out
}

// types types text in the window.
func (w *window) types(t *testing.T, text string) {
	t.Helper()
	must.Get(w.d.do("xdotool", "windowfocus", w.id, "type", "--delay", "1", "--", text))(t)
}

// keys presses keys, such as ctrl+z.
func (w *window) keys(t *testing.T, keys ...string) {
	t.Helper()
	must.Get(w.d.do(append([]string{"xdotool", "windowfocus", w.id, "key", "--delay", "1", "--"}, keys...)...))(t)
}

// runs types a command that leaves the file name, and returns what is in it.
func (w *window) runs(t *testing.T, command, name string) string {
	t.Helper()
	w.types(t, command+"\n")
	return w.result(t, name)
}

// result waits for a file and returns it.
func (w *window) result(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	testkit.Eventually(t, testkit.Patience, w.name+" has the file "+name, func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
	got := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.Remove(path))
	return string(got)
}

// sleeper is a program that differs from those of other windows.
func (w *window) sleeper(n int) string { return fmt.Sprintf("sleep %d.%d", 10000+n, w.n) }

// process finds the process with the command line. Its state is as in /proc/PID/stat,
// with a + in the foreground; "" if there is no such process.
func process(line string) (pid int, state string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if args, err := os.ReadFile(file); err != nil || strings.TrimSuffix(string(args), "\x00") != strings.ReplaceAll(line, " ", "\x00") {
			continue
		}
		dir := filepath.Dir(file)
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(after) // state, parent, group, session, terminal, the terminal's group
		if len(f) < 6 || f[0] == "Z" {
			continue
		}
		pid, _ = strconv.Atoi(filepath.Base(dir))
		if state = f[0]; f[2] == f[5] {
			state += "+"
		}
		return pid, state
	}
	return 0, ""
}

// is waits for a state.
func is(t *testing.T, line, want string) {
	t.Helper()
	got := "?"
	testkit.Eventually(t, testkit.Patience, fmt.Sprintf("%s is %q", line, want), func() bool { _, got = process(line); return got == want })
}
