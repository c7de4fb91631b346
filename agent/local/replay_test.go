package local_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/screen"
)

// prints makes a child print text, and returns when the daemon has all of it.
func (w *world) prints(id string, child *testkit.Child, text string) {
	w.t.Helper()
	before := must.Get(w.client.Find(w.t.Context(), id))(w.t)
	for rest := text; len(rest) > 0; {
		n := min(len(rest), 16<<10)
		child.Print(rest[:n])
		rest = rest[n:]
	}
	testkit.Eventually(w.t, patience, "all is printed", func() bool {
		now, err := w.client.Find(w.t.Context(), id)
		return err == nil && now.Bytes == before.Bytes+int64(len(text))
	})
}

// collects returns all output up to and including the text last.
func collects(t *testing.T, a *localclient.Attachment, last string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := ""
	for !strings.Contains(got, last) {
		m, err := a.Next(ctx)
		if err != nil {
			t.Fatalf("read %q, without %q: %v", got, last, err)
		}
		got += string(m.Data)
	}
	return got
}

// acts are sequences on which a terminal acts: it answers, sets the clipboard, notifies,
// rings, saves a file, prints, or changes its font.
var acts = []string{
	"\x1b[c", "\x1b[>c", "\x1b[6n", "\x1b[5n", "\x1b[?6n", "\x1b]11;?\x1b\\", "\x1b]4;1;?\a", "\x1b[?u", "\x1b[>q", "\x1b[?2026$p", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x05", "\x1bZ",
	"\x1b[21t", "\x1b[18t", "\x1b]52;c;ZXZpbA==\a", "\x1b]52;c;?\a", "\x1b]9;note\a", "\x1b]777;notify;a;b\a", "\x1b]99;;note\x1b\\", "\a", "\x1b]1337;File=name=eA==:AAAA\a", "\x1b]1337;Copy=:x\a",
	"\x1b[5i", "\x1b[?2048h", "\x1b[?2031h", "\x1b]50;?\a", "\x1b]50;fixed\a", "\x1b_Ga=q,i=1;AAAA\x1b\\", "\x1bP@kitty-cmd{}\x1b\\",
}

// What is replayed to somebody who attaches does not act on their terminal. What comes
// afterwards is unchanged.
func TestHistoryDoesNotAct(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	m, child := w.spawn("a")
	drawn := "$ \x1b[31mred\x1b[m \x1b]8;;file:///x\alink\x1b]8;;\a \x1b]0;title\a\x1b[?2004h\x1b[>1u"
	w.prints(m.ID, child, drawn+strings.Join(acts, "")+"end\r\n")
	for name, o := range map[string]localclient.AttachOptions{"drawn": {Tail: 64 << 10, Screen: true}, "not drawn": {Tail: 64 << 10}, "in part": {Tail: 40, Screen: true}} {
		a := w.attach(m.ID, o)
		got := collectsMore(t, a, child, "live"+name)
		if !strings.Contains(got, drawn) && name != "in part" {
			t.Errorf("%s: %q is not in %q", name, drawn, got)
		}
		if o.Screen { // settings come behind the history
			for _, set := range []string{"\x1b[?2031h", "\x1b[?2048h"} {
				if strings.Count(got, set) != 1 || strings.Index(got, set) < strings.Index(got, "end") {
					t.Errorf("%s: %q is not set behind the history: %q", name, set, got)
				}
				got = strings.ReplaceAll(got, set, "")
			}
		}
		got = strings.ReplaceAll(got, "\x1b[5i", "")
		for _, act := range acts {
			if act == "\a" {
				continue // it ends the title
			}
			if strings.Contains(got, act) {
				t.Errorf("%s: %q is in %q", name, act, got)
			}
		}
		child.Print(strings.Join(acts, "") + "now" + name)
		if live := collects(t, a, "now"+name); live != strings.Join(acts, "")+"now"+name {
			t.Errorf("%s: live output comes as %q", name, live)
		}
		a.Close()
	}
	a := w.attach(m.ID, localclient.AttachOptions{Tail: 64 << 10, Script: true})
	if got := collects(t, a, "not drawn"); !strings.HasPrefix(got, drawn+strings.Join(acts, "")+"end\r\n") {
		t.Errorf("a script gets %q", got)
	}
}

// collectsMore makes the child print text, and returns the output up to that.
func collectsMore(t *testing.T, a *localclient.Attachment, child *testkit.Child, text string) string {
	t.Helper()
	child.Print(text)
	return collects(t, a, text)
}

// A sequence that has begun before somebody attaches and ends afterwards does nothing if
// it would act, and draws if it draws. The text behind it is shown.
func TestSequencesAcrossTheSeam(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	long := "\x1b]52;c;" + strings.Repeat("ZXZpbA==", 200) + "\a"
	for i, act := range append([]string{long, "\x1b]1337;File=name=eA==:" + strings.Repeat("A", 3000) + "\x1b\\"}, acts...) {
		if len(act) < 2 {
			continue
		}
		for _, at := range []int{1, 2, len(act) / 2, len(act) - 1} {
			m, child := w.spawn(fmt.Sprint("act-", i, "-", at))
			w.prints(m.ID, child, "before"+act[:at])
			a := w.attach(m.ID, localclient.AttachOptions{Tail: 64 << 10, Screen: true})
			got := collects(t, a, "before")
			child.Print(act[at:] + "behind")
			got += collects(t, a, "behind")
			if strings.Contains(got, act) && act != "\x1b[?2031h" && act != "\x1b[?2048h" {
				t.Errorf("%.40q, cut at %d, comes whole: %q", act, at, got)
			}
			s := screen.NewState(80, 24)
			s.Write([]byte(got))
			if s.Text() != "beforebehind" {
				t.Errorf("%.40q, cut at %d, shows %q: %q", act, at, s.Text(), got)
			}
			child.Print("\x1b[6nlive")
			reads(t, a, "\x1b[6nlive")
			child.End(0)
			a.Close()
		}
	}
	for _, draws := range []string{"\x1b[?1049h", "\x1b[31m", "\x1b]0;title\a", "\x1b[5;5H", "世"} {
		for at := 1; at < len(draws); at++ {
			m, child := w.spawn(fmt.Sprint("draw-", len(draws), "-", at))
			w.prints(m.ID, child, "before"+draws[:at])
			a := w.attach(m.ID, localclient.AttachOptions{Tail: 64 << 10, Screen: true})
			got := collects(t, a, "before")
			child.Print(draws[at:] + "behind")
			if got += collects(t, a, "behind"); got != "before"+draws+"behind" {
				t.Errorf("%q, cut at %d, comes as %q", draws, at, got)
			}
			child.End(0)
			a.Close()
		}
	}
}

// Who comes back has everything set again that programs have set, however long ago, and
// the same screen, with the history in front of it.
func TestComingBackSetsAgain(t *testing.T) {
	const set = "\x1b[>1u\x1b[>7u\x1b[>4;2m\x1b[?2031h\x1b[?9001h\x1b[?1004h\x1b[4 q\x1b]11;#123456\a\x1b[?5h"
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10})
	for name, c := range map[string]struct {
		before string
		tail   int64
	}{
		"little output":        {set + "x\r\n", 64 << 10},
		"much output":          {set + strings.Repeat("a line\r\n", 2000), 4 << 10},
		"output that is gone":  {set + strings.Repeat("a line of output\r\n", 40_000), 64 << 10},
		"alternate screen":     {set + "\x1b[?1049h\x1b[>15uTHE HEADER" + strings.Repeat("\x1b[5;5Hx\x1b[6;6Hy", 3000), 4 << 10},
		"alternate, and back":  {set + "\x1b[?1049h\x1b[>15uTHE HEADER\x1b[<u\x1b[?1049l" + strings.Repeat("a line\r\n", 2000), 4 << 10},
		"header on the main":   {set + "\x1b[HHEADER\x1b[3;20r" + strings.Repeat("\x1b[20;1Ha line\r\n", 2000), 4 << 10},
		"nothing set any more": {set + "\x1bc" + strings.Repeat("a line\r\n", 2000), 4 << 10},
	} {
		m, child := w.spawn(name)
		w.prints(m.ID, child, c.before)
		a := w.attach(m.ID, localclient.AttachOptions{Tail: c.tail, Screen: true})
		got := collectsMore(t, a, child, "last")
		want, late := screen.NewState(80, 24), screen.NewState(80, 24)
		want.Write([]byte(c.before + "last"))
		late.Write([]byte(got))
		if catch := want.Catch(late); len(catch) > 0 || string(late.Replay()) != string(want.Replay()) {
			t.Errorf("%s: it differs by %q\n got %q\nwant %q", name, catch, late.Replay(), want.Replay())
		}
		if lines := strings.Count(c.before, "\r\n"); lines > 1 && strings.Count(got, "\r\n") < int(c.tail)/20/2 {
			t.Errorf("%s: of %d lines, the history has %d", name, lines, strings.Count(got, "\r\n"))
		}
		child.End(0)
	}
}

// A terminal whose output was lost is redrawn as one on which nothing is set, and the
// client is told so.
func TestRedrawnIsSaid(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10, Stall: 1})
	m, child := w.spawn("a")
	child.Print("\x1b[>1uready")
	a := w.attach(m.ID, localclient.AttachOptions{Tail: 4 << 10, Screen: true})
	collects(t, a, "ready")
	counter(child, 600_000) // more than sockets hold
	for {
		msg := must.Get(a.Next(t.Context()))(t)
		if c := msg.Control; c != nil && c.Type == localapi.ControlLagged {
			if !c.Redrawn {
				t.Errorf("it is not said: %+v", c)
			}
			return
		}
	}
}
