package history

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

// onDisk opens a history on a disk in memory, with small bounds.
func onDisk(t testing.TB, m *memory) (h *History, trouble *string) {
	t.Helper()
	trouble = new("")
	h = must.Get(Open(Options{Dir: "x", Keep: time.Hour, FS: m, Report: func(s string) { *trouble = s }}))(t)
	h.bounds = small
	return h, trouble
}

// wrote returns a disk on which a terminal has printed n bytes and ended or not.
func wrote(t testing.TB, id string, n int64) *memory {
	t.Helper()
	m := newMemory()
	h, _ := onDisk(t, m)
	w := must.Get(h.Terminal(terminal(id)))(t)
	for w.End() < n {
		must.Do(t, w.Append(printed(id, w.End(), min(n, w.End()+40)), time.Now()))
		must.Do(t, h.Sync(t.Context()))
	}
	must.Do(t, w.Note(Note{Kind: NoteDir, Dir: "/src", Time: time.Now()}))
	must.Do(t, h.Close())
	return m
}

// file returns the content of the last file of a directory whose name has a prefix.
func (m *memory) file(t testing.TB, dir, prefix string) *content {
	t.Helper()
	in := m.root
	if dir != "." {
		in = m.root.names[dir].(*folder)
	}
	for _, e := range slices.Backward(must.Get(m.List(dir))(t)) {
		if strings.HasPrefix(e.Name, prefix) {
			return in.names[e.Name].(*content)
		}
	}
	t.Fatalf("no %s in %s", prefix, dir)
	return nil
}

// Wherever the last file ends, what comes before is there, and the next daemon goes on.
func TestTornTail(t *testing.T) {
	const id = "pty-a"
	m := wrote(t, id, 320)
	c := m.file(t, id, segmentPrefix)
	whole := slices.Clone(c.data)
	for n := range whole {
		c.data = slices.Clone(whole[:n])
		h, trouble := onDisk(t, m)
		have := spans(t, h, id)
		if len(have) > 1 || len(have) == 1 && have[0].From != 0 {
			t.Fatalf("of %d bytes of the file there is %v", n, have)
		}
		w := must.Get(h.Terminal(terminal(id)))(t)
		if len(have) == 1 && w.End() != have[0].To || len(have) == 0 && w.End() != 0 {
			t.Fatalf("with %v the next daemon goes on at %d", have, w.End())
		}
		must.Do(t, w.Append(printed(id, w.End(), 400), time.Now()))
		must.Do(t, h.Close())
		h, _ = onDisk(t, m)
		if have := spans(t, h, id); !slices.Equal(have, []Span{{0, 400}}) || *trouble != "" {
			t.Fatalf("cut at %d, then written on: there is %v; trouble: %q", n, have, *trouble)
		}
		m = wrote(t, id, 320)
		c = m.file(t, id, segmentPrefix)
	}
}

// A damaged byte costs its frame, its note or its run, and nothing else.
func TestDamagedFiles(t *testing.T) {
	const id = "pty-a"
	for _, c := range []struct{ dir, file string }{{id, segmentPrefix}, {id, notesName}, {".", listName}} {
		m := wrote(t, id, 500)
		file := m.file(t, c.dir, c.file)
		for i := 0; i < len(file.data); i++ { // of a new disk it may differ
			file.data[i] ^= 0x55
			h, _ := onDisk(t, m)
			lost := int64(500)
			for _, s := range spans(t, h, id) {
				lost -= s.To - s.From
			}
			if c.file == segmentPrefix && lost > 2*64 || c.file != segmentPrefix && lost > 0 {
				t.Fatalf("%s with a damaged byte %d: %d bytes of text are lost", c.file, i, lost)
			}
			must.Do(t, h.Close())
			file.data[i] ^= 0x55
			if c.file == listName { // the next one may have repaired it
				m = wrote(t, id, 500)
				file = m.file(t, c.dir, c.file)
			}
		}
	}
}

// A list that is damaged as a whole is made again from the terminals' text.
func TestDamagedList(t *testing.T) {
	const id = "pty-a"
	for name, data := range map[string][]byte{
		"empty":    {},
		"no text":  {0, 1, 2, 3, '\n', 0xff},
		"no lines": bytes.Repeat([]byte("x"), 3*window),
		"foreign":  []byte("{\"id\":\"pty-a\",\"terminal\":\"../../x\"}\n{\"id\":\"../x\"}\n[]\nnull\n"),
	} {
		m := wrote(t, id, 500)
		m.file(t, ".", listName).data = data
		h, trouble := onDisk(t, m)
		r, err := h.Run(id)
		if err != nil || !r.Lost || r.End != 500 || !slices.Equal(spans(t, h, id), []Span{{0, 500}}) || *trouble != "" {
			t.Errorf("%s: the run is %+v, %v; trouble %q", name, r, err, *trouble)
		}
		must.Do(t, h.Close())
	}
}

// What is not the history's stays, and disturbs nothing.
func TestForeignFiles(t *testing.T) {
	const id = "pty-a"
	m := wrote(t, id, 100)
	m.root.names["photo.jpg"] = &content{data: []byte("x")}
	m.root.names["pty-b"] = &content{data: []byte("a file, not a directory")}
	m.root.names["letters"] = &folder{names: map[string]any{"text-1.zst": &content{data: []byte("x")}}}
	m.root.names[id].(*folder).names["mine.txt"] = &content{data: []byte("x")}
	m.root.names[id].(*folder).names[segmentName(50)] = newFolder()
	h, _ := onDisk(t, m)
	if have := spans(t, h, id); !slices.Equal(have, []Span{{0, 100}}) {
		t.Errorf("there is %v", have)
	}
	w := must.Get(h.Terminal(terminal("pty-b")))(t)
	if err := errors.Join(w.Append([]byte("x"), time.Now()), h.Sync(t.Context())); err == nil {
		t.Error("a terminal whose directory is a file could be written")
	}
	must.Get(Open(Options{Dir: "x", FS: m}))(t)
	if len(m.root.names) != 4 || len(m.root.names[id].(*folder).names) != 2 {
		t.Errorf("with keep 0 there is %v, and %v of the terminal", m.root.names, m.root.names[id])
	}
}

// A list that is no file is set aside.
func TestListIsADirectory(t *testing.T) {
	m := newMemory()
	m.root.names[listName] = newFolder()
	h, trouble := onDisk(t, m)
	must.Get(h.Terminal(terminal("pty-a")))(t)
	must.Do(t, h.Sync(t.Context()))
	if _, err := h.Run("pty-a"); err != nil || *trouble != "" {
		t.Errorf("the run is not in the list: %v; trouble %q", err, *trouble)
	}
	if m.root.names[listName+damagedExt] == nil {
		t.Error("what was there is not set aside")
	}
}

// On a full disk text is missing; later text is kept when there is room again.
func TestFullDisk(t *testing.T) {
	const id = "pty-a"
	for room := range int64(400) {
		m := newMemory()
		h, trouble := onDisk(t, m)
		w := must.Get(h.Terminal(terminal(id)))(t)
		must.Do(t, w.Append(printed(id, 0, 30), time.Now()))
		must.Do(t, h.Sync(t.Context()))
		m.room = room
		for w.End() < 300 {
			_ = w.Append(printed(id, w.End(), w.End()+30), time.Now())
			_ = w.Note(Note{Kind: NoteRound, Time: time.Now()})
			_ = h.Sync(t.Context())
		}
		if !strings.Contains(*trouble, "no space left") {
			t.Fatalf("with room for %d bytes the trouble is %q", room, *trouble)
		}
		m.room = -1
		must.Do(t, w.Append(printed(id, 300, 400), time.Now()))
		_ = h.Sync(t.Context())
		_ = h.Sync(t.Context())
		if *trouble != "" {
			t.Fatalf("with room again the trouble is still %q", *trouble)
		}
		have := spans(t, h, id)
		if have[0].From != 0 || have[0].To < 30 || !covers(have, []Span{{300, 400}}) {
			t.Fatalf("with room for %d bytes there is %v", room, have)
		}
		r := w.Run()
		r.Ended = time.Now()
		must.Do(t, w.Finish(r))
		must.Do(t, h.Close())
		h, _ = onDisk(t, m)
		if again := spans(t, h, id); !slices.Equal(again, have) {
			t.Fatalf("with room for %d bytes there was %v, after a restart %v", room, have, again)
		}
	}
}

// A directory that cannot be written is reported once, and read.
func TestReadOnly(t *testing.T) {
	const id = "pty-a"
	m := wrote(t, id, 100)
	m.sour = errors.New("read-only file system")
	h, trouble := onDisk(t, m)
	if have := spans(t, h, id); !slices.Equal(have, []Span{{0, 100}}) {
		t.Errorf("there is %v", have)
	}
	w, _ := h.Terminal(terminal("pty-b"))
	if err := errors.Join(w.Append([]byte("x"), time.Now()), h.Sync(t.Context())); err == nil || !strings.Contains(*trouble, "read-only") {
		t.Errorf("the error is %v, the trouble %q", err, *trouble)
	}
	if _, _, err := h.Forget(func(Run) bool { return true }); err == nil {
		t.Error("a run was forgotten")
	}
	m.sour = nil
	must.Do(t, w.Append([]byte("y"), time.Now()))
	_ = h.Sync(t.Context())
	_ = h.Sync(t.Context())
	if *trouble != "" {
		t.Errorf("the trouble is still %q", *trouble)
	}
}

// Output may be anything.
func TestBinaryOutput(t *testing.T) {
	m := newMemory()
	h, _ := onDisk(t, m)
	w := must.Get(h.Terminal(terminal("pty-a")))(t)
	noise := make([]byte, 1500)
	r := rand.NewChaCha8([32]byte{45})
	must.Get(r.Read(noise))(t)
	copy(noise[700:], frameMagic())
	copy(noise[800:], frameMagic())
	must.Do(t, w.Append(noise, time.Now()))
	must.Do(t, h.Close())
	h, _ = onDisk(t, m)
	text := must.Get(h.Text("pty-a"))(t)
	var all []byte
	for {
		f, err := text.Next()
		if err == io.EOF {
			break
		}
		must.Do(t, err)
		all = append(all, f.Data...)
	}
	if !bytes.Equal(all, noise) {
		t.Errorf("%d bytes come back as %d others", len(noise), len(all))
	}
}
