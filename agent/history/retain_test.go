package history

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// ended writes a terminal that printed n bytes and has ended.
func ended(t testing.TB, h *History, id string, n int64, at time.Time) {
	t.Helper()
	r := terminal(id)
	r.Started = at
	w := must.Get(h.Terminal(r))(t)
	must.Do(t, w.Append(printed(id, 0, n), at))
	r = w.Run()
	r.Ended = at
	must.Do(t, w.Finish(r))
	must.Do(t, h.Sync(t.Context()))
}

func ids(h *History, q Query) (all []string) {
	for r := range h.List(q) {
		all = append(all, r.ID)
	}
	return all
}

// everything returns the texts of all files of a disk, the compressed ones expanded.
func (m *memory) everything(h *History) string {
	var all bytes.Buffer
	var walk func(dir *folder)
	walk = func(dir *folder) {
		for name, f := range dir.names {
			fmt.Fprintln(&all, name)
			switch f := f.(type) {
			case *folder:
				walk(f)
			case *content:
				all.Write(f.data)
				for hd, packed := range headers(f.data) {
					if text, ok := h.codec.unpack(nil, hd, packed); ok {
						all.Write(text)
					}
				}
			}
		}
	}
	walk(m.root)
	return all.String()
}

// size returns what the files and directories of a disk take.
func (m *memory) size() (n int64) {
	for name, f := range m.root.names {
		switch f := f.(type) {
		case *content:
			n += roundUp(int64(len(f.data)))
		case *folder:
			n += block
			for _, c := range f.names {
				n += roundUp(int64(len(c.(*content).data)))
			}
		default:
			panic(name)
		}
	}
	return n
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		h, _ := onDisk(t, m)
		ended(t, h, "pty-a", 100, time.Now())
		w := must.Get(h.Terminal(terminal("pty-shell")))(t)
		must.Do(t, w.Append([]byte("$ first\n"), time.Now()))
		command := func(n int, start, end int64) {
			r := Run{ID: fmt.Sprintf("pty-shell.%d", n), Terminal: "pty-shell", Command: n, Started: time.Now(), Ended: time.Now(), Start: start, End: end}
			must.Do(t, w.Finish(r))
		}
		command(1, 2, 8)
		time.Sleep(40 * time.Minute)
		ended(t, h, "pty-b", 100, time.Now())
		must.Do(t, w.Append([]byte("$ second\n"), time.Now()))
		command(2, 10, 17)
		time.Sleep(30 * time.Minute)
		must.Do(t, h.Sync(t.Context()))
		if got, want := ids(h, Query{}), []string{"pty-shell.2", "pty-b", "pty-shell"}; !slices.Equal(got, want) {
			t.Errorf("after 70 minutes there is %q, want %q", got, want)
		}
		if got, want := textOf(t, h, "pty-shell"), "$ [gap]$ second\n"; got != want {
			t.Errorf("the shell's text is %q, want %q", got, want)
		}
		if strings.Contains(m.everything(h), "first") || m.root.names["pty-a"] != nil {
			t.Error("what is too old is still on the disk")
		}
		if got, want := h.Status().Bytes, m.size(); got != want {
			t.Errorf("the status tells %d bytes, the disk has %d", got, want)
		}
		must.Do(t, h.Close())
	})
}

// What is young enough stays, also if it takes nearly all that is allowed.
func TestKeepAndMaxBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, most := range []int64{0, 32 << 10} { // two terminals and the list take 20 KiB
			h := must.Get(Open(Options{Dir: "x", Keep: time.Hour, MaxBytes: most, FS: newMemory()}))(t)
			ended(t, h, "pty-a", 100, time.Now())
			time.Sleep(40 * time.Minute)
			ended(t, h, "pty-b", 100, time.Now())
			ended(t, h, "pty-c", 100, time.Now())
			time.Sleep(30 * time.Minute)
			must.Do(t, h.Sync(t.Context()))
			if got := ids(h, Query{}); !slices.Equal(got, []string{"pty-c", "pty-b"}) {
				t.Errorf("with at most %d bytes there is %q", most, got)
			}
			must.Do(t, h.Close())
		}
	})
}

// A clock that jumps removes nothing by itself, and runs of a time that never was are
// kept as long as others.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := time.Duration(0)
		h := must.Get(Open(Options{Dir: "x", Keep: time.Hour, FS: newMemory(), Now: func() time.Time { return time.Now().Add(offset) }}))(t)
		put := func(id string) { ended(t, h, id, 10, time.Now().Add(offset)) }
		put("pty-a")
		offset = 365 * 24 * time.Hour
		put("pty-b")
		time.Sleep(5 * time.Minute)
		must.Do(t, h.Sync(t.Context()))
		offset = -365 * 24 * time.Hour
		put("pty-c")
		time.Sleep(5 * time.Minute)
		must.Do(t, h.Sync(t.Context()))
		offset = 0
		for range 4 {
			time.Sleep(5 * time.Minute)
			must.Do(t, h.Sync(t.Context()))
		}
		if got, want := ids(h, Query{}), []string{"pty-c", "pty-b", "pty-a"}; !slices.Equal(got, want) {
			t.Errorf("after jumps there is %q, want %q", got, want)
		}
		must.Do(t, h.Close())
	})
}

// The oldest go until the rest is small enough, never one that runs.
func TestMaxBytes(t *testing.T) {
	m := newMemory()
	const most = 100 << 10
	h := must.Get(Open(Options{Dir: "x", Keep: time.Hour, MaxBytes: most, FS: m}))(t)
	h.bounds = small
	runs := must.Get(h.Terminal(terminal("pty-runs")))(t)
	must.Do(t, runs.Append(printed("pty-runs", 0, 100), time.Now()))
	for i := range 60 {
		ended(t, h, fmt.Sprintf("pty-%d", i), 100, time.Now())
		if m.size() > most || h.Status().Bytes != m.size() {
			t.Fatalf("with %d runs the status tells %d bytes, the disk has %d", i, h.Status().Bytes, m.size())
		}
	}
	all := ids(h, Query{})
	if all[0] != "pty-59" || !slices.Contains(all, "pty-runs") || len(all) < 5 || slices.Contains(all, "pty-0") {
		t.Errorf("there is %q", all)
	}
	if have := spans(t, h, "pty-runs"); !slices.Equal(have, []Span{{0, 100}}) {
		t.Errorf("of the one that runs there is %v", have)
	}
	must.Do(t, h.Close())
}

// Of terminals that run the middle goes when there is nothing else.
func TestMaxBytesOfRunning(t *testing.T) {
	m := newMemory()
	const most = 60 << 10
	h := must.Get(Open(Options{Dir: "x", Keep: time.Hour, MaxBytes: most, FS: m}))(t)
	h.bounds = small
	for i := range 5 {
		id := fmt.Sprintf("pty-%d", i)
		w := must.Get(h.Terminal(terminal(id)))(t)
		for range 50 {
			must.Do(t, w.Append(printed(id, w.End(), w.End()+50), time.Now()))
			must.Do(t, h.Sync(t.Context()))
		}
	}
	if m.size() > most {
		t.Errorf("the disk has %d bytes", m.size())
	}
	for i := range 5 {
		have := spans(t, h, fmt.Sprintf("pty-%d", i))
		if !covers(have, []Span{{2450, 2500}}) {
			t.Errorf("of terminal %d there is %v", i, have)
		}
	}
	must.Do(t, h.Close())
}

// A run that prints without end keeps its start and its newest text, and says what is
// missing.
func TestHugeRun(t *testing.T) {
	const id = "pty-a"
	m := newMemory()
	h, _ := onDisk(t, m)
	w := must.Get(h.Terminal(terminal(id)))(t)
	n := int64(testkit.Load(200_000, 20_000)) // 500 segments; as many of the usual size are 2 GB
	for w.End() < n {
		must.Do(t, w.Append(printed(id, w.End(), min(n, w.End()+1000)), time.Now()))
	}
	if files := len(must.Get(m.List(id))(t)); files > 10 {
		t.Errorf("there are %d files", files)
	}
	must.Do(t, h.Sync(t.Context()))
	have := spans(t, h, id)
	if len(have) != 2 || have[0].From != 0 || have[0].To < small.head || have[1].To != n || have[1].From > n-small.tail {
		t.Fatalf("there is %v", have)
	}
	r := w.Run()
	r.Ended = time.Now()
	must.Do(t, w.Finish(r))
	must.Do(t, h.Sync(t.Context()))
	r = must.Get(h.Run(id))(t)
	if want := have[1].From - have[0].To; r.Dropped != want || r.Size != m.size()-block-roundUp(int64(len(m.file(t, ".", listName).data))) {
		t.Errorf("the record tells %d dropped bytes, want %d, and the size %d", r.Dropped, want, r.Size)
	}
	must.Do(t, h.Close())
}

// What is forgotten is nowhere on the disk.
func TestForget(t *testing.T) {
	m := newMemory()
	h, _ := onDisk(t, m)
	lines := func(w *Writer, words ...string) {
		for _, word := range words {
			must.Do(t, w.Append([]byte(word+"\n"), time.Now()))
			must.Do(t, h.Sync(t.Context()))
		}
	}
	command := func(w *Writer, n int, start int64) {
		line := fmt.Sprintf("command-%d", n)
		must.Do(t, w.Note(Note{Kind: NoteFinished, Command: commandOf(n, line)}))
		must.Do(t, w.Finish(Run{ID: fmt.Sprintf("%s.%d", w.id, n), Terminal: w.id, Command: n, Line: line, Started: time.Now(), Ended: time.Now(), Start: start, End: w.End()}))
	}
	shell := must.Get(h.Terminal(terminal("pty-shell")))(t)
	lines(shell, "alpha")
	command(shell, 1, 0)
	lines(shell, "bravo")
	command(shell, 2, 6)
	lines(shell, "charlie")
	command(shell, 3, 12)
	old := must.Get(h.Terminal(terminal("pty-old")))(t)
	lines(old, "delta")
	command(old, 1, 0)
	lines(old, "echo")
	r := old.Run()
	r.Ended = time.Now()
	must.Do(t, old.Finish(r))

	forget := func(want int, ids ...string) {
		t.Helper()
		n, _, err := h.Forget(func(r Run) bool { return slices.Contains(ids, r.ID) })
		if n != want || err != nil {
			t.Errorf("forgetting %q removed %d runs, want %d: %v", ids, n, want, err)
		}
	}
	gone := func(words ...string) {
		t.Helper()
		all := m.everything(h)
		for _, word := range words {
			if strings.Contains(all, word) {
				t.Errorf("%s is still on the disk", word)
			}
		}
	}
	forget(1, "pty-shell.2")
	gone("bravo", "command-2")
	if got, want := textOf(t, h, "pty-shell"), "alpha\n[gap]charlie\n"; got != want {
		t.Errorf("the shell has %q, want %q", got, want)
	}
	forget(1, "pty-old.1")
	gone("delta")
	if got, want := textOf(t, h, "pty-old"), "[gap]echo\n"; got != want {
		t.Errorf("the ended terminal has %q, want %q", got, want)
	}
	forget(1, "pty-old")
	gone("echo", "pty-old")
	must.Do(t, shell.Note(Note{Kind: NoteLent, Host: "h"}))
	must.Do(t, shell.Append([]byte("in memory\n"), time.Now()))
	forget(3, "pty-shell")
	gone("alpha", "charlie", "in memory", "command-")
	lines(shell, "foxtrot")
	if got, want := textOf(t, h, "pty-shell"), "[gap]foxtrot\n"; got != want {
		t.Errorf("the shell has %q, want %q", got, want)
	}
	if got := ids(h, Query{}); !slices.Equal(got, []string{"pty-shell"}) {
		t.Errorf("the list has %q", got)
	}
	if notes := must.Get(must.Get(h.Text("pty-shell"))(t).Notes())(t); len(notes) != 2 || notes[0].Kind != NoteLent || notes[1].Kind != NoteForgot {
		t.Errorf("the notes are %+v", notes)
	}
	if got, want := h.Status().Bytes, m.size(); got != want {
		t.Errorf("the status tells %d bytes, the disk has %d", got, want)
	}
	must.Do(t, h.Close())
}

// Writers, rounds, readers and forgetting do not wait for each other for ever.
func TestAllAtOnce(t *testing.T) {
	h, _ := onDisk(t, newMemory())
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			id := fmt.Sprintf("pty-%d", i)
			for range 10 {
				w := must.Get(h.Terminal(terminal(id)))(t)
				for range 30 {
					must.Do(t, w.Append(printed(id, w.End(), w.End()+50), time.Now()))
				}
				r := w.Run()
				r.Ended = time.Now()
				must.Do(t, w.Finish(r))
				id += "x" + fmt.Sprint(i)
			}
		})
	}
	group.Go(func() {
		for range 50 {
			must.Do(t, h.Sync(t.Context()))
			h.Status()
		}
	})
	group.Go(func() {
		for range 20 {
			for r := range h.List(Query{}) {
				if text, err := h.Text(r.ID); err == nil {
					for _, err := text.Next(); err == nil; _, err = text.Next() {
					}
					text.Close()
				}
			}
		}
	})
	group.Go(func() {
		for i := range 10 {
			_, _, err := h.Forget(func(r Run) bool { return strings.HasSuffix(r.ID, fmt.Sprint(i%4)) })
			must.Do(t, err)
		}
	})
	group.Wait()
	must.Do(t, h.Close())
}
