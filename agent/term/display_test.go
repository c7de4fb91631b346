package term_test

import (
	"testing"
	"testing/synctest"

	"tether/agent/term"
)

// On Windows a console's title is at first the path of its program, and cmd.exe's again
// between two commands. A terminal keeps its name.
func TestTitleThatNamesTheProgram(t *testing.T) {
	const cmd = `C:\windows\system32\cmd.exe`
	for _, c := range []struct {
		command []string
		titles  []string
		want    string
	}{
		{[]string{"cmd", "/k"}, []string{cmd}, "build"},
		{[]string{"CMD.EXE"}, []string{cmd}, "build"},
		{[]string{cmd}, []string{cmd}, "build"},
		{[]string{"cmd"}, []string{cmd, cmd + " - ping 127.0.0.1"}, cmd + " - ping 127.0.0.1"},
		{[]string{"cmd"}, []string{"theirs", cmd}, "build"},
		{[]string{"pwsh"}, []string{cmd}, cmd},
		{[]string{"cmd"}, []string{"cmd"}, "cmd"},
		{[]string{"/bin/top"}, []string{"/bin/top"}, "/bin/top"},
		{nil, []string{cmd}, cmd},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, f, _ := start(t, term.Options{}, term.Spec{Name: "build", Command: c.command})
			for _, title := range c.titles {
				prints(f, "\x1b]0;"+title+"\x1b\\")
			}
			if got := h.Info().Title; got != c.want {
				t.Errorf("%q sets %q: title %q, want %q", c.command, c.titles, got, c.want)
			}
		})
	}
}
