package history

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// stuck is an FS whose disk stands still: it syncs no file with some suffix.
type stuck struct {
	*memory
	suffix string
	came   chan struct{} // a sync waits
	mu     sync.Mutex
	still  chan struct{} // closed when the disk goes on; nil if it does
}

func newStuck(suffix string) *stuck {
	return &stuck{memory: newMemory(), suffix: suffix, came: make(chan struct{}, 100)}
}

// next ends the waiting of syncs; if again, later ones wait.
func (s *stuck) next(again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.still != nil {
		close(s.still)
	}
	if s.still = nil; again {
		s.still = make(chan struct{})
	}
}

func (s *stuck) wait(name string) {
	s.mu.Lock()
	still := s.still
	s.mu.Unlock()
	if still != nil && strings.HasSuffix(name, s.suffix) {
		s.came <- struct{}{}
		<-still
	}
}

func (s *stuck) Append(name string) (File, error) {
	f, err := s.memory.Append(name)
	return &stuckFile{f, s, name}, err
}

func (s *stuck) SyncDir(name string) error {
	s.wait(name)
	return s.memory.SyncDir(name)
}

type stuckFile struct {
	File
	s    *stuck
	name string
}

func (f *stuckFile) Sync() error {
	f.s.wait(f.name)
	return f.File.Sync()
}

// contents returns everything that is written.
func (m *memory) contents() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	var walk func(top string, d *folder)
	walk = func(top string, d *folder) {
		for name, x := range d.names {
			switch x := x.(type) {
			case *content:
				all[top+name] = string(x.data)
			case *folder:
				walk(top+name+"/", x)
			}
		}
	}
	walk("", m.root)
	return all
}

// A disk that stands still holds up the end for a second: then everything is written, if
// not synced, and nothing is written any more, also when the disk goes on.
func TestEndsThoughTheDiskStandsStill(t *testing.T) {
	for name, atRound := range map[string]bool{"at the end": false, "in a round": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testStandsStill(t, atRound) }) })
	}
}

func testStandsStill(t *testing.T, atRound bool) {
	disk := newStuck("")
	h := must.Get(Open(Options{Dir: "d", Keep: time.Hour, FS: disk}))(t)
	var writers []*Writer
	for _, id := range []string{"pty-aaaaaaaa", "pty-bbbbbbbb", "pty-cccccccc"} {
		w := must.Get(h.Terminal(Run{ID: id, Terminal: id, Started: time.Now(), End: -1}))(t)
		must.Do(t, w.Append(printed(id, 0, 1000), time.Now()))
		must.Do(t, w.Finish(w.Run())) // so that its frames are to be joined
		writers = append(writers, w)
	}
	other := must.Get(h.Terminal(Run{ID: "pty-dddddddd", Terminal: "pty-dddddddd", Started: time.Now(), End: -1}))(t)
	disk.next(true)
	defer disk.next(false)
	if atRound {
		go func() { _ = h.Sync(context.Background()) }()
		synctest.Wait()
	}
	must.Do(t, other.Append(printed("pty-dddddddd", 0, 1000), time.Now()))
	began := time.Now()
	if err := h.Close(); err == nil {
		t.Error("it does not say that something was not synced")
	}
	if took := time.Since(began); took > closeWithin {
		t.Errorf("the end took %v", took)
	}
	before := disk.contents()
	readsAll(t, disk.memory, append(writers, other))
	_ = other.Append(printed("pty-dddddddd", 1000, 9000), time.Now())
	if err := errors.Join(other.Note(Note{Kind: NoteDir, Dir: "/x"}), h.Put(other.Run())); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("writing after the end: %v", err)
	}
	disk.next(false)
	synctest.Wait()
	check.Equal(t, "after the end", disk.contents(), before)
}

// readsAll opens the files as the next daemon does.
func readsAll(t *testing.T, m *memory, writers []*Writer) {
	t.Helper()
	next := must.Get(Open(Options{Dir: "d", Keep: time.Hour, FS: m}))(t)
	for _, w := range writers {
		if got := spans(t, next, w.id); len(got) != 1 || got[0] != (Span{0, 1000}) {
			t.Errorf("%s has %v", w.id, got)
		}
	}
}

// While a file is synced that was written anew, output, notes and records do not wait,
// and are not lost with it.
func TestWritingDoesNotWaitForRewriting(t *testing.T) {
	disk := newStuck(newExt)
	h := must.Get(Open(Options{Dir: "d", Keep: time.Hour, FS: disk}))(t)
	h.bounds.frames, h.bounds.notes = 2, 200
	const id = "pty-aaaaaaaa"
	w := must.Get(h.Terminal(Run{ID: id, Terminal: id, Started: time.Now(), End: -1}))(t)
	end := int64(0)
	add := func() {
		t.Helper()
		check.OK(t, w.Append(printed(id, end, end+100), time.Now()))
		end += 100
		check.OK(t, errors.Join(w.flush(), w.Note(Note{Kind: NoteSize, Cols: int(end), Rows: 1}), h.Put(w.Run())))
	}
	for range 5 {
		add()
	}
	standsStill := func(do func() error) {
		t.Helper()
		disk.next(true)
		defer disk.next(false)
		done := make(chan error, 1)
		go func() { done <- do() }()
		for rewritten := 0; ; rewritten++ {
			select {
			case <-disk.came:
				add()
				disk.next(true)
			case err := <-done:
				check.OK(t, err)
				if rewritten < 2 { // a segment, and the notes or the list
					t.Errorf("%d files were written anew", rewritten)
				}
				return
			}
		}
	}
	standsStill(func() error { return h.Sync(t.Context()) })
	must.Do(t, h.Put(Run{ID: id + ".1", Terminal: id, Command: 1, Started: time.Now(), Ended: time.Now(), Start: 0, End: 1}))
	standsStill(func() error {
		_, _, err := h.Forget(func(r Run) bool { return r.ID == id+".1" })
		return err
	})
	must.Do(t, h.Close())
	next := must.Get(Open(Options{Dir: "d", Keep: time.Hour, FS: disk}))(t)
	if got := spans(t, next, id); len(got) != 1 || got[0] != (Span{1, end}) {
		t.Errorf("the text has %v, want all but one byte up to %d", got, end)
	}
	text := must.Get(next.Text(id))(t)
	defer text.Close()
	notes := must.Get(text.Notes())(t)
	if len(notes) == 0 || notes[len(notes)-1].Cols != int(end) {
		t.Errorf("the newest of the notes is not there: %+v", notes)
	}
	if r, err := next.Run(id); err != nil || r.ID != id {
		t.Errorf("the run is %+v, %v", r, err)
	}
}
