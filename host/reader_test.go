package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tether/agenttools"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// owned is a host with one machine and one terminal.
func owned(t testing.TB, o host.Options) (h *host.Host, owner *viewer, uri string) {
	h = steadyHost(t, o)
	owner = connect(t, h, "laptop", viewOptions{resume: true})
	owner.create("ahp-terminal:/a")
	return h, owner, "ahp-terminal:/a"
}

// only is the one terminal of the catalogue.
func only(t testing.TB, h *host.Host) agenttools.Terminal {
	t.Helper()
	all := host.Catalogue(h).List()
	if len(all) != 1 {
		t.Fatalf("%d terminals", len(all))
	}
	return must.Get(host.Catalogue(h).Open(all[0].ID))(t)
}

// drain reads available text from an offset, with rooms of the given sizes in turn, as
// one line per event.
func drain(t testing.TB, x agenttools.Terminal, from int64, rooms ...int) (events []string, next int64) {
	t.Helper()
	r := must.Get(x.Read(from))(t)
	defer r.Close()
	next = from
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			events = append(events, fmt.Sprintf("text %q", text.String()))
			text.Reset()
		}
	}
	for i := 0; ; i++ {
		ev, ok, err := r.TryNext(make([]byte, rooms[i%len(rooms)]))
		if errors.Is(err, io.EOF) || err == nil && !ok {
			flush()
			if err != nil {
				events = append(events, "end")
			}
			return events, next
		}
		must.Do(t, err)
		if ev.Off < next {
			t.Fatalf("offset %d after %d", ev.Off, next)
		}
		if len(ev.Data) > 0 {
			text.Write(ev.Data)
			next = ev.Off
			continue
		}
		flush()
		next = ev.Off
		switch {
		case ev.Lost > 0:
			events = append(events, "lost")
		case ev.Finished != nil:
			events = append(events, fmt.Sprintf("finished %d", ev.Finished.N))
		case ev.Resized != nil:
			events = append(events, fmt.Sprintf("resized %v", *ev.Resized))
		case ev.Exited:
			events = append(events, "exited")
		}
	}
}

func TestReaderSeesTextAndMarksInOrder(t *testing.T) {
	h, owner, uri := owned(t, host.Options{})
	three := int64(3)
	owner.output(uri, "before ä€𝄞\r\n", -1)
	owner.dispatch(uri, ahp.TerminalCommandExecuted{CommandID: "x", CommandLine: "make", Timestamp: 1})
	owner.output(uri, "out \"quoted\"\x1b[31m\n", -1)
	ms := 1500.0
	owner.dispatch(uri, ahp.TerminalCommandFinished{CommandID: "x", ExitCode: &three, DurationMs: &ms})
	owner.dispatch(uri, ahp.TerminalResized{Cols: 100, Rows: 30})
	owner.dispatch(uri, ahp.TerminalCommandExecuted{CommandID: "y", CommandLine: "npm run dev", Timestamp: 2})
	owner.output(uri, "ready", -1)
	owner.ping()
	x := only(t, h)
	want := []string{`text "before ä€𝄞\r\nout \"quoted\"\x1b[31m\n"`, "finished 1", "resized [100 30]", `text "ready"`}
	got, next := drain(t, x, 0, 64)
	check.Equal(t, "", want, got)
	i := x.Info()
	if next != i.End || i.Start != 0 || i.Running != "npm run dev" || i.Name != "laptop/build" || i.Machine != "laptop" || i.Exit != nil {
		t.Errorf("read to %d, info %+v", next, i)
	}
	code := 3
	commands := []vocab.Command{{N: 1, Line: new("make"), Exit: &code, Verified: true, DurationMs: new(1500.0), Start: 18, End: 36}, {N: 2, Line: new("npm run dev"), Running: true, Verified: true, Start: 37, End: 42}}
	check.Equal(t, "commands: ", commands, x.Commands())
	// The offsets before and after a mark differ: a reader that has seen the end of a
	// command does not see it again.
	if got, _ := drain(t, x, 36, 64); len(got) == 0 || got[0] != "finished 1" {
		t.Errorf("from before the mark: %q", got)
	}
	if got, _ := drain(t, x, 37, 64); len(got) == 0 || got[0] != "resized [100 30]" {
		t.Errorf("from after the mark: %q", got)
	}
	seven := int64(7)
	owner.dispatch(uri, ahp.TerminalExited{ExitCode: &seven})
	owner.ping()
	if got, _ := drain(t, x, next, 64); !cmp.Equal(got, []string{"exited", "end"}) {
		t.Errorf("after the exit: %q", got)
	}
	if e := x.Info().Exit; e == nil || e.Code != 7 || e.At.IsZero() {
		t.Errorf("exit %+v", e)
	}
}

// For any output and any way of reading it, a reader gets the recorded text, in order, or
// is told of losses.
func TestReaderGetsTheRecordedText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := host.New(host.Options{Scrollback: 2 << 10})
		defer h.Close()
		c := host.NewFeed(h, "ahp-terminal:/a")
		x := only(t, h)
		r, err := x.Read(0)
		if err != nil {
			rt.Fatal(err)
		}
		var all, got strings.Builder // the output, and the read text; a loss is shown by skipping as much
		marks, seen, lost := 0, 0, false
		read := func(room int) bool {
			ev, ok, err := r.TryNext(make([]byte, room))
			if err != nil {
				rt.Fatal(err)
			}
			got.Write(ev.Data)
			if ev.Lost > 0 {
				lost = true
				got.Reset()
			}
			if ev.Resized != nil {
				seen++
				if !lost && ev.Resized[0] != seen {
					rt.Fatalf("mark %d after %d", ev.Resized[0], seen-1)
				}
			}
			return ok
		}
		pieces := rapid.SampledFrom([]string{"a", "ä", "€uro", "𝄞", "\x1b[0m", "\"\\/", "\u2028", "\x00\x7f", strings.Repeat("long line\n", 30)})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1, 2:
				s := strings.Join(rapid.SliceOfN(pieces, 1, 6).Draw(rt, "text"), "")
				all.WriteString(s)
				c.Text(s)
			case 3:
				marks++
				c.Act(ahp.TerminalResized{Cols: int64(marks), Rows: 1})
			case 4:
				read(rapid.IntRange(64, 300).Draw(rt, "room"))
			case 5:
				c.Act(ahp.TerminalCommandExecuted{CommandID: "c", CommandLine: "l"})
				c.Act(ahp.TerminalCommandFinished{CommandID: "c"})
			}
		}
		for read(rapid.IntRange(64, 300).Draw(rt, "room")) {
		}
		if !strings.HasSuffix(all.String(), got.String()) || !lost && got.Len() != all.Len() {
			rt.Fatalf("read %q\nof   %q, lost %v", got.String(), all.String(), lost)
		}
		if !lost && seen != marks {
			rt.Fatalf("%d of %d marks", seen, marks)
		}
		if i := x.Info(); i.Start > i.End || i.Start < 0 {
			rt.Fatalf("info %+v", i)
		}
	})
}

// A reader that waits is woken by text, marks and the exit, without looking again and
// again.
func TestReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{})
		defer h.Close()
		c := host.NewFeed(h, "ahp-terminal:/a")
		x := only(t, h)
		r := must.Get(x.Read(0))(t)
		events := make(chan agenttools.Event)
		go func() {
			defer close(events)
			for {
				ev, err := r.Next(t.Context(), make([]byte, 64))
				if err != nil {
					return
				}
				ev.Data = slices.Clone(ev.Data)
				events <- ev
			}
		}()
		next := func() agenttools.Event {
			time.Sleep(time.Hour)
			synctest.Wait()
			select {
			case ev := <-events:
				return ev
			default:
				t.Fatal("nobody was woken")
				return agenttools.Event{}
			}
		}
		c.Text("one")
		if ev := next(); string(ev.Data) != "one" {
			t.Errorf("%+v", ev)
		}
		c.Act(ahp.TerminalResized{Cols: 9, Rows: 9})
		if ev := next(); ev.Resized == nil {
			t.Errorf("%+v", ev)
		}
		c.Act(ahp.TerminalExited{})
		if ev := next(); !ev.Exited {
			t.Errorf("%+v", ev)
		}
		if _, ok := <-events; ok {
			t.Error("an event after the exit")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := host.NewFeed(h, "ahp-terminal:/b")
		defer d.Text("")
		other := must.Get(host.Catalogue(h).Open(host.Catalogue(h).List()[1].ID))(t)
		waiting := must.Get(other.Read(0))(t)
		if _, err := waiting.Next(ctx, make([]byte, 64)); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

func TestMarksAreBounded(t *testing.T) {
	h := testHost(t, host.Options{})
	c := host.NewFeed(h, "ahp-terminal:/a")
	c.Text("x")
	for i := range 10_000 {
		c.Act(ahp.TerminalResized{Cols: int64(i%1000 + 1), Rows: 1})
	}
	c.Text("y")
	x := only(t, h)
	got, next := drain(t, x, 0, 64)
	if len(got) > 2100 || got[0] != "lost" || got[len(got)-1] != `text "y"` || next != x.Info().End {
		t.Errorf("%d events, first %q, last %q, to %d of %d", len(got), got[0], got[len(got)-1], next, x.Info().End)
	}
}

func TestMachineNames(t *testing.T) {
	for _, c := range []struct{ title, id, want string }{
		{"laptop", "0a1b2c3d4e5f", "laptop"},
		{"", "0a1b2c3d4e5f", "0a1b2c3d"},
		{"a/b\x1b[31m\u202ec", "id", "a-b[31mc"},
		{strings.Repeat("x", 65), "id", "id"},
	} {
		h := steadyHost(t, host.Options{})
		v := connect(t, h, c.id, viewOptions{noInit: true})
		p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: c.id, Meta: ahp.NewClientMeta(),
			ClientInfo: &ahp.Implementation{Name: "tether", Title: c.title}}
		must.Do(t, v.call(ahp.MethodInitialize, p, nil))
		v.create("ahp-terminal:/a")
		if got := host.Catalogue(h).List()[0].Machine; got != c.want {
			t.Errorf("%q of %s is called %q, want %q", c.title, c.id, got, c.want)
		}
	}
}
