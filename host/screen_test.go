package host_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/screen"
)

// seen is a client's display of a state: the screen at a place in the content, and the
// text behind it, in the sizes that the terminal had.
func seen(t *testing.T, s ahp.TerminalState) string {
	t.Helper()
	at := s.Meta.Screen
	if at == nil {
		at = &ahp.Screen{Cols: s.Cols, Rows: s.Rows}
	}
	if at.Truncated {
		t.Error("the screen is said to be truncated")
	}
	shows := screen.NewState(int(at.Cols), int(at.Rows))
	shows.Write([]byte(at.Data))
	text, pos := s.Text(), at.After
	for _, z := range at.Sizes {
		shows.Write([]byte(text[pos:z[0]]))
		shows.Resize(int(z[1]), int(z[2]))
		pos = z[0]
	}
	shows.Write([]byte(text[pos:]))
	return string(shows.Replay())
}

// drawn is output of a full-screen program, or of one that prints lines. The contents of
// the other screen are unknown if the size changes, see package screen.
func drawn(random *rand.Rand, other bool) string {
	var b strings.Builder
	for range random.IntN(300) {
		switch n := random.IntN(12); {
		case n == 0 && other:
			b.WriteString([]string{"\x1b[?1049h\x1b[2J\x1b[HTHE HEADER", "\x1b[?1049l"}[random.IntN(2)])
		case n == 1:
			fmt.Fprintf(&b, "\x1b[%d;%dr", 1+random.IntN(5), 6+random.IntN(9))
		case n < 5:
			fmt.Fprintf(&b, "\x1b[3%dmline %d of 世界\x1b[m\r\n", random.IntN(8), random.IntN(1e6))
		default:
			fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[Kcounter %d", 1+random.IntN(14), 1+random.IntN(50), random.IntN(1e6))
		}
	}
	return b.String()
}

// A client that joins at any moment sees the same as one that was there from the start,
// by the screen that snapshots have besides the retained text.
func TestObserversJoinAtTheScreen(t *testing.T) {
	const uri = "ahp-terminal:/dev"
	for round := range testkit.Rounds(t, 4, 1000) {
		random := rand.New(rand.NewPCG(uint64(round), 18))
		sizes := round%2 == 1
		h := testHost(t, host.Options{Scrollback: 16 << 10})
		laptop := connect(t, h, "laptop", viewOptions{})
		laptop.create(uri)
		start := laptop.state(uri)
		whole := screen.NewState(max(int(start.Cols), 80), max(int(start.Rows), 24))
		var last *viewer
		for range 30 {
			if text := drawn(random, !sizes); text != "" {
				laptop.output(uri, text, -1)
				whole.Write([]byte(text))
			}
			if sizes && random.IntN(3) == 0 {
				cols, rows := 40+random.IntN(60), 15+random.IntN(20)
				laptop.dispatch(uri, ahp.TerminalResized{Cols: int64(cols), Rows: int64(rows)})
				whole.Resize(cols, rows)
			}
			laptop.ping()
			if random.IntN(3) > 0 {
				continue
			}
			v := connect(t, h, fmt.Sprint("observer ", random.Int64()), viewOptions{})
			must.Do(t, v.subscribe(uri))
			if got, want := seen(t, v.state(uri)), string(whole.Replay()); got != want {
				t.Fatalf("round %d: seen is\n%q, want\n%q", round, got, want)
			}
			last = v
		}
		if last != nil { // the reducer goes on with it
			laptop.output(uri, "THE END", -1)
			whole.Write([]byte("THE END"))
			last.awaitText(uri, "THE END")
			if got, want := seen(t, last.state(uri)), string(whole.Replay()); got != want {
				t.Fatalf("round %d: in the end seen is\n%q, want\n%q", round, got, want)
			}
		}
		laptop.close()
	}
}

// A snapshot says where a part of the screen is not known, and has no screen where all
// text is there.
func TestSnapshotsReportUnknownText(t *testing.T) {
	const uri = "ahp-terminal:/dev"
	h := testHost(t, host.Options{Scrollback: 16 << 10})
	laptop := connect(t, h, "laptop", viewOptions{})
	laptop.create(uri)
	join := func() *ahp.Screen {
		t.Helper()
		laptop.ping()
		v := connect(t, h, "observer", viewOptions{subs: []string{uri}})
		defer v.close()
		return v.state(uri).Meta.Screen
	}
	laptop.output(uri, "\x1b[HTHE HEADER", -1)
	if at := join(); at != nil {
		t.Errorf("all is there, and the screen is %+v", at)
	}
	redraw := func() {
		for range 20 {
			laptop.output(uri, strings.Repeat("\x1b[4;1H\x1b[Kcounter", 100), -1)
		}
	}
	redraw()
	if at := join(); at == nil || !strings.Contains(at.Data, "THE HEADER") || at.Truncated {
		t.Errorf("the screen is %+v", at)
	}
	laptop.output(uri, "after a gap", 1<<30)
	redraw()
	if at := join(); at == nil || !at.Truncated {
		t.Errorf("after a gap the screen is %+v", at)
	}
	laptop.output(uri, "\x1b[2J\x1b[H", -1)
	redraw()
	if at := join(); at == nil || at.Truncated {
		t.Errorf("after a clear the screen is %+v", at)
	}
}

// Nor is the screen known where the host has none of the output from the start.
func TestSnapshotsSayThatTheStartIsNotKnown(t *testing.T) {
	const uri = "ahp-terminal:/dev"
	h := testHost(t, host.Options{Scrollback: 16 << 10})
	laptop := connect(t, h, "laptop", viewOptions{resume: true})
	laptop.create(uri)
	for offset := int64(5000); offset < 45_000; offset += 2000 {
		laptop.output(uri, strings.Repeat("\x1b[4;1H\x1b[Kcounter", 133)[:2000], offset)
		laptop.ping()
		v := connect(t, h, "observer", viewOptions{subs: []string{uri}})
		if at := v.state(uri).Meta.Screen; at == nil || !at.Truncated {
			t.Errorf("after %d bytes the screen is %+v", offset, at)
		}
		v.close()
	}
}

// A slow reader misses output, and still sees the screen.
func TestFallenBehindSeeTheScreen(t *testing.T) {
	for round := range testkit.Rounds(t, testkit.Load(10, 2), 1000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(round), 19))
			sizes := round%2 == 1
			h := testHost(t, host.Options{Scrollback: 64 << 10, LogBytes: 32 << 10})
			laptop := connect(t, h, "laptop", viewOptions{})
			laptop.create(uri)
			whole := screen.NewState(80, 24)
			print := func(text string) {
				laptop.output(uri, text, -1)
				whole.Write([]byte(text))
			}
			print("\x1b[?1049h\x1b[2J\x1b[HTHE HEADER")
			laptop.ping()
			slow, g := slowViewer(t, h, "slow", uri)
			for range 50 {
				for range random.IntN(12) {
					print(drawn(random, !sizes))
					if sizes && random.IntN(3) == 0 {
						cols, rows := 40+random.IntN(60), 15+random.IntN(20)
						laptop.dispatch(uri, ahp.TerminalResized{Cols: int64(cols), Rows: int64(rows)})
						whole.Resize(cols, rows)
					}
				}
				laptop.ping()
				g.allow(random.IntN(20))
			}
			print("THE END")
			laptop.ping()
			g.openUp()
			slow.awaitText(uri, "THE END")
			if got, want := seen(t, slow.state(uri)), string(whole.Replay()); got != want {
				t.Errorf("round %d: who fell behind sees\n%q, want\n%q", round, got, want)
			}
			if slow.state(uri).Meta.Screen == nil {
				t.Errorf("round %d: nobody fell behind", round)
			}
		})
	}
}

// An owner sends the screen if the host lacks the text before: everybody sees it from
// there on, but it is in no content and no position.
func TestOwnersSayTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uri = "ahp-terminal:/dev"
		h := testHost(t, host.Options{})
		laptop := connect(t, h, "laptop", viewOptions{resume: true})
		laptop.create(uri)
		early := connect(t, h, "early", viewOptions{})
		must.Do(t, early.subscribe(uri))
		laptop.dispatch(uri, ahp.TerminalResized{Cols: 120, Rows: 40})
		laptop.dispatch(uri, ahp.TerminalResized{Cols: 30, Rows: 5})
		at := ahp.Screen{Cols: 30, Rows: 5, Data: "\x1b[?1049hTHE HEADER\x1b[2;1H"}
		laptop.dispatch(uri, ahp.TerminalOutput{Offset: new(int64(5000)), Screen: &at})
		laptop.output(uri, "more", 5000)
		laptop.dispatch(uri, ahp.TerminalResized{Cols: 40, Rows: 6})
		laptop.output(uri, "\r\nlast", 5004)
		// One that the host has text of is of no use to it.
		laptop.dispatch(uri, ahp.TerminalOutput{Offset: new(int64(5000)), Screen: &ahp.Screen{Cols: 30, Rows: 5, Data: "old"}})
		laptop.ping()
		synctest.Wait()
		want := screen.NewState(30, 5)
		want.Write([]byte(at.Data + "more"))
		want.Resize(40, 6)
		want.Write([]byte("\r\nlast"))
		late := connect(t, h, "late", viewOptions{})
		must.Do(t, late.subscribe(uri))
		for _, v := range []*viewer{early, late} {
			state := v.state(uri)
			if got := seen(t, state); got != string(want.Replay()) {
				t.Errorf("seen\n%q, want\n%q", got, want.Replay())
			}
			if text := state.Text(); strings.Contains(text, "HEADER") || !strings.HasSuffix(text, "more\r\nlast") {
				t.Errorf("the text is %q", text)
			}
		}
	})
}

// Text that a program has drawn long ago is on the screen, although the host has not kept
// it, until output is missing.
func TestScreenOfTrimmedText(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot"), Scrollback: 64 << 10})
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	const uri = "ahp-terminal:/dev"
	laptop := as(t, url, "machine-laptop", "laptop-id", viewOptions{})
	laptop.create(uri)
	laptop.output(uri, "\x1b[?1049h\x1b[2J\x1b[HTHE HEADER\x1b[3;1H", -1)
	for i := 0; i < 20_000; {
		var b strings.Builder
		for ; i < 20_000 && b.Len() < 8<<10; i++ {
			fmt.Fprintf(&b, "\x1b[4;1H\x1b[Kcounter %d", i)
		}
		laptop.output(uri, b.String(), -1)
	}
	laptop.ping()
	var all []listed
	use(t, agent, "list_terminals", nil, &all)
	type shown struct {
		History   string
		Truncated bool
	}
	read := func() (s shown) {
		t.Helper()
		use(t, agent, "read_terminal", map[string]any{"terminalId": all[0].ID, "format": "screen"}, &s)
		return s
	}
	if got, want := read(), (shown{History: "THE HEADER\n\n\ncounter 19999"}); got != want {
		t.Errorf("the screen is %+v, want %+v", got, want)
	}
	laptop.output(uri, "after a gap", 1<<30)
	laptop.ping()
	if got := read(); !got.Truncated || !strings.Contains(got.History, "after a gap") {
		t.Errorf("after a gap the screen is %+v, want truncated", got)
	}
	laptop.output(uri, "\x1b[2J\x1b[Hclear", -1)
	laptop.ping()
	if got, want := read(), (shown{History: "clear"}); got != want {
		t.Errorf("after it was cleared the screen is %+v, want %+v", got, want)
	}
}
