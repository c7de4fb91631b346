package history

import (
	"bytes"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

// Whatever is in a segment, a frame behind it is found, and no text is larger than its
// header says.
func FuzzSegment(f *testing.F) {
	codec := newCodec()
	frame := codec.pack(nil, &Frame{Off: 5, Data: []byte("no\rhello\n"), First: time.UnixMicro(1), Time: time.UnixMicro(2)})
	f.Add([]byte{})
	f.Add(frame)
	f.Add(frame[:len(frame)-3])
	f.Add(append(bytes.Clone(frame[:60]), frame...))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := ""
		for hd, packed := range headers(append(bytes.Clone(data), frame...)) {
			if text, ok := codec.unpack(nil, hd, packed); ok {
				if len(text) > maxFrame {
					t.Errorf("a frame has %d bytes", len(text))
				}
				last = string(text)
			}
			drawn, _ := codec.unpackDrawn(nil, nil, hd, 0)
			for _, d := range drawn {
				if d.Start < 0 || d.End <= d.Start || d.End > hd.text || len(d.Text) == 0 {
					t.Errorf("a frame of %d bytes has a line %+v", hd.text, d)
				}
			}
		}
		if last != "no\rhello\n" {
			t.Errorf("behind %q the last frame is %q", data, last)
		}
	})
}

// Whatever the list is, runs that are listed are found, and new ones are added.
func FuzzList(f *testing.F) {
	line := must.Get(terminal("pty-a").encode())(f)
	f.Add([]byte{})
	f.Add(line)
	f.Add(line[:len(line)-4])
	f.Add(append(append([]byte("{}\nnull\n"), line...), line...))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMemory()
		m.root.names[listName] = &content{data: data}
		h, _ := onDisk(t, m)
		for r := range h.List(Query{}) {
			if again, err := h.Run(r.ID); err != nil || again.ID != r.ID {
				t.Errorf("run %s is listed, but found as %+v, %v", r.ID, again, err)
			}
		}
		must.Get(h.Terminal(terminal("pty-new")))(t)
		if ids := ids(h, Query{}); len(ids) == 0 || ids[0] != "pty-new" {
			t.Errorf("a new run is not the newest of %q", ids)
		}
		before := len(ids(h, Query{}))
		must.Do(t, h.rewriteList(func(*Run) bool { return true }))
		if after := len(ids(h, Query{})); after != before {
			t.Errorf("of %d runs a new list has %d", before, after)
		}
		must.Do(t, h.Close())
	})
}

// Whatever the notes are, a new one is added.
func FuzzNotes(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(`{"off":3,"time":"2026-01-02T03:04:05Z","kind":"dir","dir":"/src"}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMemory()
		m.root.names["pty-a"] = &folder{names: map[string]any{notesName: &content{data: data}}}
		h, _ := onDisk(t, m)
		w := must.Get(h.Terminal(terminal("pty-a")))(t)
		must.Do(t, w.Note(Note{Kind: NoteDir, Dir: "/new"}))
		notes := must.Get(must.Get(h.Text("pty-a"))(t).Notes())(t)
		if len(notes) == 0 || notes[len(notes)-1].Dir != "/new" {
			t.Errorf("a new note is not the last of %+v", notes)
		}
		must.Do(t, h.Close())
	})
}
