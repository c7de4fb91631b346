//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/internal/xterm"
)

// painting is a terminal that prints a test's text.
type painting struct {
	name  string
	id    string
	left  []xterm.Part // to be printed
	done  xterm.Stream // the printed text
	bytes int64        // of that
	last  string       // the end of that, which is at no other place
	pipe  *os.File
}

// paint starts a terminal that prints a stream.
func (m *mortal) paint(name string, s xterm.Stream) *painting {
	m.t.Helper()
	pipe := filepath.Join(m.t.TempDir(), "pipe")
	must.Do(m.t, syscall.Mkfifo(pipe, 0o600))
	t := m.spawn(localapi.SpawnRequest{Command: []string{"sh", "-c", `stty raw -echo && exec cat "$0"`, pipe}, Name: name, Cols: uint16(s.Cols), Rows: uint16(s.Rows)})
	p := &painting{name: name, id: t.ID, left: s.Parts, done: xterm.Stream{Cols: s.Cols, Rows: s.Rows}}
	var err error
	if p.pipe, err = os.OpenFile(pipe, os.O_WRONLY, 0); err != nil { // waits for cat
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { p.pipe.Close() })
	return p
}

// print prints the next parts, and a colour behind them that was not there before.
func (p *painting) print(t *testing.T, parts int) {
	t.Helper()
	p.last = fmt.Sprintf("\x1b[38;5;%dm", len(p.done.Parts))
	next := append(slices.Clip(p.left[:parts]), xterm.Part{Data: []byte("\x18" + p.last)}) // which ends incomplete sequences
	p.left = p.left[parts:]
	for _, part := range next {
		n := must.Get(p.pipe.Write(part.Data))(t)
		p.bytes += int64(n)
	}
	p.done.Parts = append(p.done.Parts, next...)
}

// seen is the terminal's state as somebody is told who joins at the host now that all is
// there.
func (m *mortal) seen(p *painting) ahp.TerminalState {
	m.t.Helper()
	testkit.Eventually(m.t, patience, p.name+" is printed", func() bool { return m.find(p.id).Bytes == p.bytes })
	uri := ""
	m.await(p.name+" is at the host", func(s localapi.Status) bool {
		for _, l := range s.Hosts[0].Lent {
			if l.ID == p.id && l.There && l.Unacked == 0 {
				uri = l.URI
			}
		}
		return uri != ""
	})
	near, far := testkit.Channels()
	go m.host.ServeChannel(context.Background(), far)
	c := must.Get(client.ConnectChannel(m.t.Context(), near, client.Options{ClientID: "looker"}))(m.t)
	defer c.Close()
	var state ahp.TerminalState
	testkit.Eventually(m.t, patience, p.name+" is whole at the host", func() bool { // a daemon that is new may not know yet what is to be sent
		r := must.Get(c.Subscribe(m.t.Context(), uri))(m.t)
		state = ahp.TerminalState{}
		must.Do(m.t, json.Unmarshal(r.Snapshot.State, &state))
		whole := strings.HasSuffix(state.Text(), p.last)
		if !whole {
			_ = c.Unsubscribe(m.t.Context(), uri)
		}
		return whole
	})
	return state
}

// shownBy is what somebody shows of a state.
func shownBy(s ahp.TerminalState) xterm.Stream {
	if at := s.Meta.Screen; at != nil {
		return xterm.Joined(at.Cols, at.Rows, at.Data, s.Text(), at.After, at.Sizes)
	}
	return xterm.Joined(s.Cols, s.Rows, "", s.Text(), 0, nil)
}

// paintings are recordings of programs, and random streams, with much between that
// redraws one cell or nothing, so that no log keeps the beginning.
func paintings(t *testing.T, rng *rand.Rand) map[string]xterm.Stream {
	t.Helper()
	all := map[string]xterm.Stream{}
	files, err := filepath.Glob("../../agent/redact/testdata/screens/*.raw")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		s := xterm.Stream{Cols: 80, Rows: 24}
		for len(data) > 0 {
			n := min(1+rng.IntN(1<<12), len(data))
			for n < len(data) && !utf8.RuneStart(data[n]) {
				n++
			}
			s.Parts = append(s.Parts, xterm.Part{Data: append(append(bytes.Clone(data[:n]), 0x18), bytes.Repeat([]byte{'\a'}, 30<<10)...)})
			data = data[n:]
		}
		all[strings.TrimSuffix(filepath.Base(file), ".raw")] = s
	}
	for i := range 2 {
		all[fmt.Sprint("random", i)] = xterm.Long(rng, 200<<10, false, xterm.Wider)
	}
	return all
}

// Who joins at the host after the daemon was killed, replaced, or the host has lost all,
// sees the screens of programs as xterm.js shows them that was there from the start,
// while no log goes back that far.
func TestScreensAreTrueThroughEverything(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for round := range testkit.Rounds(t, 1, 100) {
		t.Run(fmt.Sprint(round), func(t *testing.T) { screensThroughEverything(t, round) })
	}
}

func screensThroughEverything(t *testing.T, round int) {
	rng := rand.New(rand.NewPCG(uint64(round), 23))
	configure(t, "terminals.log_bytes", "64KiB")
	m := newMortal(t)
	m.start("daemon", "--replace")
	var all []*painting
	for name, s := range paintings(t, rng) {
		all = append(all, m.paint(name, s))
	}
	var names []string
	var late, whole []xterm.Stream
	events := []struct {
		name string
		do   func()
	}{
		{"at first", func() {}},
		{"after kill -9", func() { m.kill(); m.start("daemon") }},
		{"after --replace", func() { m.start("daemon", "--replace") }},
		{"after a restart of the host", func() { m.forget(host.Options{Grace: time.Hour, Scrollback: 64 << 10}) }},
	}
	for i, event := range events {
		event.do()
		for _, p := range all {
			p.print(t, len(p.left)/(len(events)-i))
			state := m.seen(p)
			if at := state.Meta.Screen; at != nil && at.Truncated {
				t.Errorf("round %d, %s, %s: the screen is said to be truncated", round, p.name, event.name)
			}
			names = append(names, p.name+" "+event.name)
			late, whole = append(late, shownBy(state)), append(whole, p.done)
		}
	}
	n, known := len(late), 0
	shown := xterm.Show(t, xterm.Widths, append(late, whole...))
	for i, got := range shown[:n] {
		if want := shown[n+i]; got != nil && want != nil {
			known++
			if d := xterm.Differ(got, want); d != "" {
				t.Errorf("round %d, %s\n%s", round, names[i], d)
			}
		}
	}
	if known < n*3/4 {
		t.Errorf("round %d: xterm.js showed %d of %d", round, known, n)
	}
}

// forget replaces the host by one that has forgotten everything.
func (m *mortal) forget(o host.Options) {
	m.host.Close()
	m.host = host.New(o)
	m.serves.Store(m.host)
}
