package term_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/screen"
)

// A host that lacks dropped output gets the screen after it, without secrets, even one
// that the remaining text cannot reveal. Text printed while nobody looked for secrets is
// not on it.
func TestHostsGetTheScreen(t *testing.T) {
	const drawn = "\x1b[?1049h\x1b[2J\x1b[1;1Hpassword: Zq81xvT0pW2\x1b[1;1Hsomething\x1b[2;1HTHE HEADER"
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := redacted(t, redact.Options{Tokens: true})
			o.LogBytes = 128 << 10
			h, f, _ := start(t, o, term.Spec{Size: term.Size{Cols: 80, Rows: 24}})
			if early {
				reader(t, h, output.ReaderOptions{View: output.ViewOutward})
			}
			f.Print(drawn)
			f.Print(strings.Repeat("\x1b[5;1Hcounter 12345\x1b[K", 20000))
			time.Sleep(time.Second)
			r := reader(t, h, output.ReaderOptions{View: output.ViewOutward, Screens: true})
			if !r.SeekText(0) {
				t.Fatal("the beginning is not an offset")
			}
			told := lastScreen(r)
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

// lastScreen is the last screen in the output that a reader has now.
func lastScreen(r *output.Reader) (told *output.Screen) {
	for buf := make([]byte, 32<<10); ; {
		ev, ok, err := r.TryNext(buf)
		if err == nil && !ok {
			return told
		}
		if ev.Screen != nil {
			told = ev.Screen
		}
	}
}

// A host gets the screen also where the oldest output begins in the middle of a long
// sequence: behind that.
func TestHostsGetTheScreenBehindAnImage(t *testing.T) {
	for _, image := range []int{100, 4 << 10, 40 << 10, 90 << 10} {
		synctest.Test(t, func(t *testing.T) {
			o := redacted(t, redact.Options{})
			o.LogBytes = 128 << 10
			h, f, _ := start(t, o, term.Spec{Size: term.Size{Cols: 80, Rows: 24}})
			reader(t, h, output.ReaderOptions{View: output.ViewOutward})
			f.Print("\x1b[?1049h\x1b[2J\x1b[HTHE HEADER")
			counter := func(bytes int) {
				const drawn = "\x1b[5;1Hcounter 12345\x1b[K"
				f.Print(strings.Repeat(drawn, bytes/len(drawn)))
				time.Sleep(time.Second)
			}
			counter(200 << 10)
			f.Print("\x1b]1337;File=inline=1:" + strings.Repeat("QUJD", image/4) + "\a")
			counter(o.LogBytes - image/2)
			r := reader(t, h, output.ReaderOptions{View: output.ViewOutward, Screens: true})
			if !r.SeekText(0) {
				t.Fatal("the beginning is not an offset")
			}
			told := lastScreen(r)
			if told == nil || !told.Exact {
				t.Fatalf("an image of %d bytes: told is %+v", image, told)
			}
			s := screen.NewState(80, 24)
			s.Write(told.Replay)
			if text := s.Text(); !strings.Contains(text, "THE HEADER") || !strings.Contains(text, "counter 12345") {
				t.Errorf("an image of %d bytes: the host sees\n%s", image, text)
			}
		})
	}
}
