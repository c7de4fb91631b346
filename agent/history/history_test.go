package history

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
	"tether/vocab"
)

func newHistory(t *testing.T, dir string) *History {
	t.Helper()
	h := must.Get(Open(Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 30, Report: func(trouble string) {
		if trouble != "" {
			t.Errorf("trouble: %s", trouble)
		}
	}}))(t)
	return h
}

func terminal(id string) Run {
	return Run{ID: id, Terminal: id, Name: "dev", Line: "npm run dev", Dir: "/src", Started: time.Now(), End: -1}
}

// textOf returns the text of a run, with gaps as [N].
func textOf(t *testing.T, h *History, id string) string {
	t.Helper()
	text := must.Get(h.Text(id))(t)
	defer text.Close()
	var all strings.Builder
	for {
		f, err := text.Next()
		if err == io.EOF {
			return all.String()
		}
		must.Do(t, err)
		if f.Missing > 0 {
			all.WriteString("[gap]")
		}
		all.Write(f.Data)
	}
}

func TestARunIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	h := newHistory(t, dir)
	w := must.Get(h.Terminal(terminal("pty-a")))(t)
	must.Do(t, w.Append([]byte("one\ntwo\n"), time.Now()))
	must.Do(t, w.Note(Note{Kind: NoteDir, Dir: "/src", Time: time.Now()}))
	if got := textOf(t, h, "pty-a"); got != "one\ntwo\n" {
		t.Errorf("before a round the text is %q", got)
	}
	must.Do(t, h.Sync(t.Context()))
	w.Missing(100)
	must.Do(t, w.Append([]byte("three\n"), time.Now()))
	must.Do(t, h.Close())

	h = newHistory(t, dir)
	w = must.Get(h.Terminal(terminal("pty-a")))(t)
	if w.End() != 114 {
		t.Errorf("the next daemon goes on at %d", w.End())
	}
	must.Do(t, w.Append([]byte("4\rfour\n"), time.Now()))
	r := w.Run()
	r.Ended, r.Exit = time.Now(), &vocab.Exit{Code: 1, Reason: vocab.ExitKilled}
	must.Do(t, w.Finish(r))
	must.Do(t, h.Sync(t.Context()))
	if got, want := textOf(t, h, "pty-a"), "one\ntwo\n[gap]three\n4\rfour\n"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	runs := slices.Collect(h.List(Query{Name: "dev"}))
	if len(runs) != 1 || runs[0].End != 121 || runs[0].Dropped != 100 || runs[0].Exit.Reason != vocab.ExitKilled {
		t.Errorf("the list has %+v", runs)
	}
	notes := must.Get(must.Get(h.Text("pty-a"))(t).Notes())(t)
	if len(notes) != 1 || notes[0].Off != 8 || notes[0].Dir != "/src" {
		t.Errorf("the notes are %+v", notes)
	}
	must.Do(t, h.Close())
	if zstdcat, err := exec.LookPath("zstdcat"); err == nil {
		files := must.Get(filepath.Glob(filepath.Join(dir, "pty-a", "text-*.zst")))(t)
		out := must.Get(exec.Command(zstdcat, files...).Output())(t)
		if string(out) != "one\ntwo\nthree\n4\rfour\n" {
			t.Errorf("zstdcat shows %q", out)
		}
	}
	must.Get(Open(Options{Dir: dir}))(t)
	if left := must.Get(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("with keep 0 there is still %v", left)
	}
}

func commandOf(n int, line string) *vocab.Command { return &vocab.Command{N: n, Line: &line} }

// A real disk renames and removes what the history has open, and others cannot read it.
func TestOnARealDisk(t *testing.T) {
	const id = "pty-a"
	dir := filepath.Join(t.TempDir(), "state", "history")
	h := newHistory(t, dir)
	h.bounds = small
	w := must.Get(h.Terminal(terminal(id)))(t)
	for w.End() < 3000 {
		must.Do(t, w.Append(printed(id, w.End(), w.End()+30), time.Now()))
		must.Do(t, w.Note(Note{Kind: NoteDir, Dir: "/src", Time: time.Now()}))
		if w.End()%300 == 0 {
			must.Do(t, h.Sync(t.Context()))
		}
	}
	must.Do(t, w.Finish(Run{ID: id + ".1", Terminal: id, Command: 1, Start: 2000, End: 2900, Started: time.Now(), Ended: time.Now()}))
	text := must.Get(h.Text(id))(t)
	must.Get(text.Next())(t)
	if n, _, err := h.Forget(func(r Run) bool { return r.Command == 1 }); n != 1 || err != nil {
		t.Errorf("%d runs were forgotten: %v", n, err)
	}
	text.Close()
	have := spans(t, h, id)
	if len(have) < 2 || have[len(have)-1] != (Span{2900, 3000}) || have[len(have)-2].To != 2000 {
		t.Errorf("there is %v", have)
	}
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return err
	}))
	if _, _, err := h.Forget(func(Run) bool { return true }); err != nil {
		t.Error(err)
	}
	must.Do(t, h.Close())
}
