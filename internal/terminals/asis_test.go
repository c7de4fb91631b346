package terminals

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// marked ends picture n: cells of a colour that nothing else has. The cursor, which may
// blink and depends on the focus, is hidden.
func marked(n int) string { return fmt.Sprintf("\x1b[?25l\x1b[48;2;%d;254;77m    \x1b[m\r\n", n) }

const (
	sixel      = "\x1bPq\"1;1;40;12#1;2;100;0;0#2;2;0;0;100#1!20~#2!20~-#2!20~#1!20~\x1b\\"
	kittyImage = "\x1b_Gf=24,s=2,v=2,a=T,c=4,r=2,q=2;/wAAAP8AAAD/////\x1b\\"
)

// shown are files that the shells show.
var shown = map[string]string{
	"styles": "\x1b[?25l\x1b[H\x1b[2J\x1b[3J" + func() string {
		var s strings.Builder
		for n := range 256 {
			fmt.Fprintf(&s, "\x1b[48;5;%dm \x1b[38;2;%d;%d;99mx", n, n, 255-n)
		}
		for n := range 10 {
			fmt.Fprintf(&s, "\x1b[0;%dmstyle\x1b[m ", n)
		}
		return s.String() + "\x1b[4:3m\x1b[58;2;255;0;0mcurly\x1b[m 日本語 é e\u0301 👩‍👩‍👧 \x1b(0lqk\x1b(B \x1b]8;;http://127.0.0.1/\x1b\\link\x1b]8;;\x1b\\\r\n" +
			"\x1b[?2026hsynchronized\x1b[?2026l \x1b[3g\x1bH\ttab\r\n"
	}(),
	"sixel":  sixel,
	"kitty":  kittyImage,
	"mark1":  marked(1),
	"mark2":  marked(2),
	"mark3":  marked(3),
	"text":   "\x1b[H\x1b[2Jselect-this-word and more\r\n",
	"title":  "\x1b]2;a title: é\x1b\\",
	"clip":   "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("from the program")) + "\a",
	"broken": "\x1b[?1049h\x1b[31;44m\x1b(0\x1b[5;10r\x1b[?7l",
}

// A step does something in a window and returns what there is to compare.
type step struct {
	name string
	do   func(t *testing.T, w *window) string
	want string // a regular expression for the window without tether
}

var steps = []step{
	{"the shell", func(t *testing.T, w *window) string { return w.runs(t, "facts 2>&1 | r facts", "facts") }, `leads its session`},
	{"environment", environment, `TERM=xterm`},
	{"questions", func(t *testing.T, w *window) string { return w.runs(t, "clear; p ask answers", "answers") }, `DA1: "\\x1b\[\?6`},
	{"jobs", jobs, `Stopped`},
	{"mouse", mouse, `came "\\x1b\[<0;\d+;\d+M\\x1b\[<0;\d+;\d+m"`},
	{"typed text", func(t *testing.T, w *window) string { // é is composed of three keys
		return w.takes(t, "", "z", func() { w.types(t, "~."); w.keys(t, "Multi_key", "apostrophe", "e", "z") })
	}, `came "~\.éz"`},
	{"control keys", func(t *testing.T, w *window) string {
		return w.takes(t, "", "z", func() {
			w.keys(t, "ctrl+c", "ctrl+backslash", "ctrl+z", "ctrl+s", "ctrl+q", "ctrl+space", "Escape", "alt+a", "F1", "Up", "shift+F5", "Return", "z")
		})
	}, `came "\\x03\\x1c\\x1a`},
	{"kitty's keyboard", func(t *testing.T, w *window) string {
		return w.takes(t, `\e[>1u\e[>4;2m`, "q", func() { w.keys(t, "ctrl+i", "Escape", "ctrl+shift+m", "q") })
	}, `came`},
	{"focus", focus, `came "\\x1b\[O\\x1b\[Iq"`},
	{"paste", func(t *testing.T, w *window) string {
		return pasted(t, w, "日本語\nsecond line é 👩‍👩‍👧\tx\n")
	}, `came "\\x1b\[200~日本語`},
	{"large paste", func(t *testing.T, w *window) string { return pasted(t, w, strings.Repeat("0123456789 é\n", 4000)) }, `came "\\x1b\[200~0123`},
	{"title", title, `a title: é`},
	{"bell", func(t *testing.T, w *window) string {
		if !w.bell {
			return "rung by no command"
		}
		return w.runs(t, `printf '\a'`, "bell")
	}, `^rung`},
	{"clipboard", clipboard, `from`},
	{"selection", selection, `^select-this-word$`},
	{"resizing", resizing, `\d+ x \d+`},
}

func (w *window) takes(t *testing.T, enable, until string, do func()) string {
	t.Helper()
	w.types(t, fmt.Sprintf("p take taken '%s' '%s'\n", enable, until))
	w.result(t, "taken.ready")
	do()
	return w.result(t, "taken")
}

// environment leaves out what differs from window to window.
func environment(t *testing.T, w *window) string {
	env := w.runs(t, "env -0 | sort -z | r env", "env")
	var kept []string
	for line := range strings.SplitSeq(env, "\x00") {
		name, value, _ := strings.Cut(line, "=")
		switch {
		case name == "R", name == "XTERM_SHELL", name == "KITTY_PUBLIC_KEY", strings.HasPrefix(name, "TETHER_") && name != "TETHER_HOME":
			continue
		case name == "WINDOWID", name == "KITTY_PID":
			line = name + " is a number: " + fmt.Sprint(regexp.MustCompile(`^\d+$`).MatchString(value))
		}
		kept = append(kept, fmt.Sprintf("%q", line))
	}
	return strings.Join(kept, "\n")
}

func jobs(t *testing.T, w *window) string {
	sleeps := w.sleeper(0)
	var got []string
	w.types(t, sleeps+"\n")
	is(t, sleeps, "S+")
	w.keys(t, "ctrl+z")
	is(t, sleeps, "T")
	got = append(got, w.runs(t, "echo $? | r s; jobs | r jobs", "s"), w.result(t, "jobs"))
	w.types(t, "bg\n")
	is(t, sleeps, "S")
	got = append(got, w.runs(t, "jobs | r jobs", "jobs"))
	w.types(t, "fg\n")
	is(t, sleeps, "S+")
	for _, end := range []string{"ctrl+c", "ctrl+backslash"} {
		w.keys(t, end)
		is(t, sleeps, "")
		got = append(got, end+" "+w.runs(t, "echo $? | r s", "s"))
		w.types(t, sleeps+"\n")
		is(t, sleeps, "S+")
	}
	w.keys(t, "ctrl+c")
	is(t, sleeps, "")
	w.runs(t, "(echo | r reads; cat) | r eof; echo $? | r s", "reads")
	w.keys(t, "a", "Return", "ctrl+d")
	got = append(got, w.result(t, "eof"), w.result(t, "s"))
	return strings.ReplaceAll(strings.Join(got, "\n"), sleeps, "sleep N")
}

func mouse(t *testing.T, w *window) string {
	return w.takes(t, `\e[?1000h\e[?1006h`, "m", func() {
		must.Get(w.d.do("xdotool", "windowfocus", w.id, "mousemove", "--window", w.id, "200", "150", "click", "1"))(t)
	})
}

// focus takes the focus away, to no window at all, and gives it back.
func focus(t *testing.T, w *window) string {
	return w.takes(t, `\e[?1004h`, "q", func() {
		must.Get(w.d.do("xdotool", "windowfocus", w.other.id))(t)
		w.types(t, "q")
	})
}

// pasted pastes the selection.
func pasted(t *testing.T, w *window, text string) string {
	stop := w.d.selects(t, "primary", text)
	defer stop()
	return w.takes(t, `\e[?2004h`, `\e[201~`, func() { w.keys(t, w.paste) })
}

func title(t *testing.T, w *window) string {
	w.types(t, "cat title\n")
	var got string
	testkit.Eventually(t, testkit.Patience, "the title", func() bool {
		got, _ = w.d.do("xdotool", "getwindowname", w.id)
		return strings.Contains(got, "a title: é")
	})
	return got
}

// clipboard lets a program write the clipboard.
func clipboard(t *testing.T, w *window) string {
	if !w.clipboard {
		return "from no program"
	}
	w.d.selects(t, "clipboard", "before")()
	w.types(t, "cat clip\n")
	var got string
	testkit.Eventually(t, testkit.Patience, "the clipboard", func() bool {
		got = w.d.selected("clipboard")
		return got != ""
	})
	return got
}

// selection selects with the mouse.
func selection(t *testing.T, w *window) string {
	w.d.selects(t, "primary", "before")()
	w.runs(t, "cat text; p ask answers", "answers") // the text is shown
	cell := w.at.Size().Div(80).X
	// Once: a second click at the same place selects more.
	must.Get(w.d.do("xdotool", "windowfocus", w.id, "mousemove", "--window", w.id, "3", "8", "mousedown", "1", "mousemove", "--window", w.id, fmt.Sprint(8*cell), "8",
		"mousemove", "--window", w.id, fmt.Sprint(16*cell), "8", "mouseup", "1", "mousemove", "1790", "590"))(t)
	var got string
	testkit.Eventually(t, testkit.Patience, "a selection", func() bool {
		got = w.d.selected("primary")
		return got != ""
	})
	return got
}

// resizing makes the window smaller, and then again as it was.
func resizing(t *testing.T, w *window) string {
	w.types(t, "p size size\n")
	w.result(t, "size.ready")
	began := time.Now()
	resize := func(size image.Point) {
		must.Get(w.d.do("xdotool", "windowsize", w.id, fmt.Sprint(size.X), fmt.Sprint(size.Y)))(t)
	}
	resize(w.at.Size().Sub(image.Pt(100, 100)))
	got := w.result(t, "size")
	t.Logf("the program knows of the new size after %v", time.Since(began).Round(time.Millisecond))
	was := w.at.Size()
	resize(was)
	testkit.Eventually(t, testkit.Patience, "the former size", func() bool {
		return strings.TrimSpace(w.runs(t, "stty size | r size", "size")) == "24 80"
	})
	return got
}

// same waits until both windows show the same picture that satisfies is.
func same(t *testing.T, what string, a, b *window, is func(p *image.RGBA) bool) {
	t.Helper()
	var left, right *image.RGBA
	equal := false
	defer func() {
		if equal {
			return
		}
		for name, p := range map[string]*image.RGBA{"without": left, "with": right} {
			var out bytes.Buffer
			must.Do(t, png.Encode(&out, p))
			file := filepath.Join(os.TempDir(), fmt.Sprintf("tether-%s-%s-%s.png", a.name, what, name))
			must.Do(t, os.WriteFile(file, out.Bytes(), 0o600))
			t.Logf("see %s", file)
		}
	}()
	testkit.Eventually(t, testkit.Patience, a.name+": the same picture: "+what, func() bool {
		left, right = must.Get(a.d.picture(a.at))(t), must.Get(b.d.picture(b.at))(t)
		equal = bytes.Equal(left.Pix, right.Pix) && is(left)
		return equal
	})
}

// hasMark reports whether a picture shows marked(which).
func hasMark(p *image.RGBA, which uint8) bool {
	n := 0
	for i := 0; i < len(p.Pix); i += 4 {
		if p.Pix[i] == which && p.Pix[i+1] == 254 && p.Pix[i+2] == 77 {
			n++
		}
	}
	return n > 100
}

// pictures compares what the windows show.
func pictures(t *testing.T, a, b *window) {
	both := func(do func(w *window)) { do(a); do(b) }
	graphics := ""
	switch a.graphics {
	case sixel:
		graphics = " sixel"
	case kittyImage:
		graphics = " kitty"
	}
	both(func(w *window) { w.types(t, "clear; cat styles"+graphics+" mark1\n") })
	same(t, "styles", a, b, func(p *image.RGBA) bool { return hasMark(p, 1) })
	both(func(w *window) { w.types(t, "seq 300; cat mark2\n") })
	same(t, "numbers", a, b, func(p *image.RGBA) bool { return hasMark(p, 2) })
	both(func(w *window) { w.keys(t, a.up) })
	same(t, "scrollback", a, b, func(p *image.RGBA) bool { return !hasMark(p, 2) })
	both(func(w *window) { w.types(t, "cat broken; reset; cat mark3\n") })
	same(t, "reset", a, b, func(p *image.RGBA) bool { return hasMark(p, 3) })
}

// leaves ends the shell.
func leaves(t *testing.T, w *window) string {
	w.types(t, "exit 3\n")
	return fmt.Sprint(<-w.ended)
}

// hangUp takes away the window while its shell has three jobs. It returns which go on.
func hangUp(t *testing.T, w *window) string {
	lines := []string{w.sleeper(1), w.sleeper(2), w.sleeper(3)}
	w.types(t, fmt.Sprintf("%s & nohup %s >/dev/null & %s\n", lines[0], lines[1], lines[2]))
	for i, line := range lines {
		is(t, line, []string{"S", "S", "S+"}[i])
	}
	must.Get(w.d.do("xdotool", "windowkill", w.id))(t)
	<-w.ended
	is(t, lines[0], "")
	is(t, lines[2], "")
	w.over(t)
	pid, stays := process(lines[1])
	if p, err := os.FindProcess(pid); err == nil && pid > 0 {
		_ = p.Kill()
	}
	return stays
}

func TestAsWithoutTether(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for _, name := range []string{"Xvfb", "setxkbmap", "xdotool", "xclip", "bash", "ps"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("not installed: %s", name)
		}
	}
	s := newStage(t)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(p.name); err != nil {
				t.Skipf("not installed: %s", p.name)
			}
			s.compare(t, p)
		})
	}
}

func (s *stage) compare(t *testing.T, p program) {
	d := newDisplay(t)
	a, b := s.open(t, d, p, false, 0), s.open(t, d, p, true, 900)
	a.other, b.other = b, a
	compare := func(step step) {
		began := time.Now()
		without, with := step.do(t, a), step.do(t, b)
		t.Logf("%s: %v", step.name, time.Since(began).Round(time.Millisecond))
		if !regexp.MustCompile(step.want).MatchString(without) {
			t.Errorf("%s: without tether, there is no %s in %q", step.name, step.want, without)
		}
		if without != with {
			t.Errorf("%s: with tether\n%s", step.name, difference(without, with))
		}
	}
	for _, step := range steps {
		compare(step)
	}
	pictures(t, a, b)
	compare(step{"exit", leaves, ""})
	for _, w := range []*window{a, b} {
		if _, err := os.Stat(filepath.Join(w.dir, "bell")); err == nil {
			t.Errorf("tether %t: the bell has rung again", w == b)
		}
	}
	a, b = s.open(t, d, p, false, 0), s.open(t, d, p, true, 900)
	compare(step{"hang-up", hangUp, "S"})
}

// difference returns the lines that only one text has.
func difference(without, with string) string {
	var out strings.Builder
	a, b := strings.Split(without, "\n"), strings.Split(with, "\n")
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Fprintf(&out, "- %s\n", line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			fmt.Fprintf(&out, "+ %s\n", line)
		}
	}
	return out.String()
}
