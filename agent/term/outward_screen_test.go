package term_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/screen"
)

// A host that lacks dropped output gets the screen after it, without secrets, even one that the remaining text cannot reveal. Text printed
// while nobody looked for secrets is not on it.
func TestHostsGetTheScreen(t *testing.T) {
	const drawn = "\x1b[?1049h\x1b[2J\x1b[1;1Hpassword: Zq81xvT0pW2\x1b[1;1Hsomething\x1b[2;1HTHE HEADER"
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := redacted(t, redact.Options{Tokens: true})
			o.LogBytes = 128 << 10
			h, f, _ := start(t, o, term.Spec{Size: term.Size{Cols: 80, Rows: 24}})
			if early {
				reader(t, h, term.ReaderOptions{View: term.ViewOutward})
			}
			f.Print(drawn)
			f.Print(strings.Repeat("\x1b[5;1Hcounter 12345\x1b[K", 20000))
			time.Sleep(time.Second)
			r := reader(t, h, term.ReaderOptions{View: term.ViewOutward, Screens: true})
			if !r.SeekText(0) {
				t.Fatal("the beginning is not an offset")
			}
			var told *term.Screen
			for buf := make([]byte, 32<<10); ; {
				ev, ok, err := r.TryNext(buf)
				if err == nil && !ok {
					break
				}
				if ev.Screen != nil {
					told = ev.Screen
				}
			}
			if told == nil {
				t.Fatal("no screen is told")
			}
			s := screen.NewState(80, 24)
			s.Write(told.Replay)
			text := s.Text()
			if strings.Contains(string(told.Replay), "Zq81") || told.Exact != early || strings.Contains(text, "THE HEADER") != early || !strings.Contains(string(told.Replay), "\x1b[?47h") {
				t.Errorf("lent early %v, exact %v: the host sees\n%s", early, told.Exact, text)
			}
		})
	}
}
