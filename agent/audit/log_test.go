package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/audit"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// private is the mode of a file that only this user may use. On Windows modes say nothing
// of others.
var private = map[rune]os.FileMode{'/': 0o600, '\\': 0o666}[filepath.Separator]

func TestAppendGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for i := range 5 {
		written(t, 3, audit.Options{Path: path})
		intact(t, path, int64(3*(i+1)))
	}
	for _, name := range []string{path, path + ".head"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != private {
			t.Errorf("%s: %v, %v; want mode %o", name, info, err, private)
		}
	}
}

func TestRefusedObjects(t *testing.T) {
	l := audit.New(audit.Options{Path: filepath.Join(t.TempDir(), "a")})
	for _, v := range []any{"text", 1, nil, []int{1}, make(chan int), map[string]string{"x": strings.Repeat("x", 1<<20)}} {
		if err := l.Append(v); err == nil {
			t.Errorf("%.40v was written", v)
		}
	}
	if err := l.Append(struct{}{}); err != nil {
		t.Errorf("empty object: %v", err)
	}
}

func TestRotationKeepsTheChain(t *testing.T) {
	const keep = 3
	path := written(t, 500, audit.Options{MaxBytes: 4 << 10, Keep: keep})
	r := verified(t, path, nil)
	if len(r.Problems) > 0 || r.First == 1 || r.Last.N < 500 {
		t.Fatalf("%+v", r)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != keep+2 {
		t.Fatalf("%d files, %v; want %d", len(entries), err, keep+2)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Size() > 5<<10 || info.Mode().Perm() != private {
			t.Errorf("%s: %v, %v", e.Name(), info, err)
		}
	}
	for _, lost := range []string{path + ".3", path + ".1"} {
		t.Run("without "+filepath.Base(lost), func(t *testing.T) {
			data := must.Get(os.ReadFile(lost))(t)
			must.Do(t, os.Remove(lost))
			if r := verified(t, path, nil); len(r.Problems) == 0 || !strings.Contains(r.Problems[0].Text, "are missing before this one") {
				t.Errorf("problems %v", r.Problems)
			}
			writeLines(t, lost, data)
		})
	}
	must.Do(t, os.Remove(path))
	if r := verified(t, path, nil); len(r.Problems) == 0 {
		t.Error("the current file was removed and not missed")
	}
}

// A rotation that ended half way, by a crash or where a file could not be moved, costs no
// file more when it goes on.
func TestARotationThatWasCutShort(t *testing.T) {
	options := audit.Options{MaxBytes: 4 << 10, Keep: 3}
	path := written(t, 500, options)
	for _, n := range []string{"2", "1"} { // all is moved but the current file
		to := map[string]string{"2": ".3", "1": ".2"}[n]
		must.Do(t, os.Rename(path+"."+n, path+to))
	}
	before := map[string]string{}
	for _, file := range []string{path + ".2", path + ".3"} {
		before[file] = string(bytes.Join(readLines(t, file), nil))
	}
	options.Path = path
	for info, err := os.Lstat(path + ".1"); info == nil; info, err = os.Lstat(path + ".1") {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		written(t, 1, options)
	}
	for file, was := range before {
		if now := string(bytes.Join(readLines(t, file), nil)); now != was {
			t.Errorf("%s is another file", filepath.Base(file))
		}
	}
	if r := verified(t, path, nil); len(r.Problems) > 0 {
		t.Errorf("problems %v", r.Problems)
	}
}

func TestResume(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, path string)
		want string // problem after two more records, "" for none
	}{
		{"half a line", func(t *testing.T, p string) {
			lines := readLines(t, p)
			writeLines(t, p, append(lines[:10], lines[9][:30])...)
		}, ""},
		{"crash before the head", func(t *testing.T, p string) {
			lines := readLines(t, p)
			r := must.Get(audit.Parse(lines[8]))(t)
			writeLines(t, p+".head", fmt.Appendf(nil, "%020d %s\n", 9, r.Hash))
		}, ""},
		{"lines cut off", func(t *testing.T, p string) { writeLines(t, p, readLines(t, p)[:7]...) }, "records 8 to 10 are missing"},
		{"file removed", func(t *testing.T, p string) {
			must.Do(t, os.Remove(p))
		}, "records 1 to 10 are missing"},
		{"last line changed", func(t *testing.T, p string) {
			lines := readLines(t, p)
			lines[9][10] ^= 1
			writeLines(t, p, lines...)
		}, ":10: "},
		{"head removed", func(t *testing.T, p string) {
			must.Do(t, os.Remove(p+".head"))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, 10, audit.Options{})
			c.do(t, path)
			written(t, 2, audit.Options{Path: path})
			r := verified(t, path, nil)
			if r.Last.N != 12 {
				t.Errorf("the last record has number %d, want 12", r.Last.N)
			}
			switch {
			case c.want == "" && len(r.Problems) > 0:
				t.Errorf("problems %v, want none", r.Problems)
			case c.want != "" && (len(r.Problems) == 0 || !strings.Contains(r.Problems[0].String(), c.want)):
				t.Errorf("problems %v, want %q", r.Problems, c.want)
			}
		})
	}
}

// A disk that takes nothing loses records, but not the count of them, and is not tried
// all the time.
func TestNoDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		l := audit.New(audit.Options{Path: filepath.Join(dir, "audit.jsonl")})
		for range 3 {
			if err := l.Append(entry{"test", "lost"}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("append: %v", err)
			}
		}
		if lost, err := l.Trouble(); lost != 3 || err == nil {
			t.Errorf("trouble: %d, %v", lost, err)
		}
		must.Do(t, os.Mkdir(dir, 0o700))
		if err := l.Append(entry{"test", "too early"}); err == nil {
			t.Error("it was tried again at once")
		}
		time.Sleep(time.Minute)
		must.Do(t, l.Append(entry{"test", "kept"}))
		if lost, err := l.Trouble(); lost != 0 || err != nil {
			t.Errorf("trouble: %d, %v", lost, err)
		}
		lines := readLines(t, filepath.Join(dir, "audit.jsonl"))
		if len(lines) != 3 || !strings.Contains(string(lines[0]), `"event":"lost","count":4`) || !strings.Contains(string(lines[1]), "kept") {
			t.Errorf("the log is %q", lines)
		}
		intact(t, filepath.Join(dir, "audit.jsonl"), 2)
	})
}

func TestRefusesFilesOfOthers(t *testing.T) {
	testkit.Unix(t, testkit.Modes)
	path := written(t, 1, audit.Options{})
	must.Do(t, os.Chmod(path, 0o644))
	l := audit.New(audit.Options{Path: path})
	if err := l.Append(entry{}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("append to an open file: %v", err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := audit.New(audit.Options{Path: path, MaxBytes: 8 << 10, Keep: 50})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				check.OK(t, l.Append(entry{"test", fmt.Sprint(i, n)}))
			}
		})
	}
	wg.Wait()
	head := l.Head()
	if r := verified(t, path, &head); len(r.Problems) > 0 || r.Last != head || r.First != 1 {
		t.Errorf("%+v, head %+v", r, head)
	}
	check.OK(t, l.Close())
}

func TestReadAndTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	early := must.Get(audit.NewTail(path))(t)
	defer early.Close()
	l := audit.New(audit.Options{Path: path, MaxBytes: 2 << 10, Keep: 9})
	var tailed []int64
	for range 40 {
		must.Do(t, l.Append(entry{"test", "x"}))
		records := must.Get(early.Next())(t)
		for _, r := range records {
			tailed = append(tailed, r.N)
		}
	}
	var all []int64
	for r, err := range audit.Read(path) {
		check.OK(t, err)
		all = append(all, r.N)
	}
	for i, n := range all {
		if n != int64(i+1) || i >= len(tailed) || tailed[i] != n {
			t.Fatalf("read %v\ntail %v", all, tailed)
		}
	}
	late := must.Get(audit.NewTail(path))(t)
	defer late.Close()
	if records, err := late.Next(); len(records) > 0 || err != nil {
		t.Errorf("a new tail has %v, %v", records, err)
	}
}
