package history

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestQuery(t *testing.T) {
	h, _ := onDisk(t, newMemory())
	src, other := filepath.FromSlash("/src/a"), filepath.FromSlash("/src/ab")
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i, r := range []Run{
		{ID: "pty-1", Name: "dev", Named: true, Line: "npm run dev", Dir: src},
		{ID: "pty-2", Name: "dev", Named: true, Line: "npm run dev -- --port 1", Dir: src},
		{ID: "pty-3", Name: "dev", Line: "npm run dev", Dir: src},
		{ID: "pty-4", Line: "npm run dev", Dir: other},
		{ID: "pty-5", Name: `odd "name"`, Dir: filepath.Join(src, "below")},
	} {
		r.Terminal, r.End = r.ID, 0
		r.Started = noon.Add(time.Duration(i) * time.Hour)
		if i > 0 {
			r.Ended = r.Started.Add(time.Minute)
		}
		must.Get(h.Terminal(r))(t)
	}
	series := must.Get(h.Run("pty-1"))(t).Series()
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"all":          {Query{}, []string{"pty-5", "pty-4", "pty-3", "pty-2", "pty-1"}},
		"name":         {Query{Name: "dev"}, []string{"pty-3", "pty-2", "pty-1"}},
		"odd name":     {Query{Name: `odd "name"`}, []string{"pty-5"}},
		"directory":    {Query{Dir: src}, []string{"pty-5", "pty-3", "pty-2", "pty-1"}},
		"terminal":     {Query{Terminal: "pty-4"}, []string{"pty-4"}},
		"named series": {Query{Series: series}, []string{"pty-2", "pty-1"}},
		"line series":  {Query{Series: must.Get(h.Run("pty-4"))(t).Series()}, []string{"pty-4"}},
		"since":        {Query{Since: noon.Add(3*time.Hour + 30*time.Second)}, []string{"pty-5", "pty-4", "pty-1"}},
		"until":        {Query{Until: noon.Add(2 * time.Hour)}, []string{"pty-2", "pty-1"}},
		"nothing":      {Query{Name: "no such"}, nil},
	} {
		if got := ids(h, c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	must.Do(t, h.Close())
}

// What has no writer when all terminals were found again has ended with its daemon.
func TestSettle(t *testing.T) {
	m := newMemory()
	h, _ := onDisk(t, m)
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, id := range []string{"pty-lives", "pty-lost", "pty-silent"} {
		r := terminal(id)
		r.Started = at
		w := must.Get(h.Terminal(r))(t)
		if id != "pty-silent" {
			must.Do(t, w.Append([]byte("hello\n"), at.Add(time.Minute)))
		}
		must.Do(t, w.Finish(Run{ID: id + ".1", Terminal: id, Command: 1, Started: at, Start: 2, End: -1}))
	}
	must.Do(t, h.Close())
	h, _ = onDisk(t, m)
	must.Get(h.Terminal(terminal("pty-lives")))(t)
	must.Do(t, h.Settle())
	for id, want := range map[string]time.Time{
		"pty-lives": {}, "pty-lives.1": {}, "pty-lost": at.Add(time.Minute), "pty-lost.1": at.Add(time.Minute), "pty-silent": at, "pty-silent.1": at,
	} {
		r := must.Get(h.Run(id))(t)
		if r.Lost != !want.IsZero() || !r.Ended.Equal(want) || r.Lost && r.End < r.Start {
			t.Errorf("%s: lost %t at %v, until %d; want %v", id, r.Lost, r.Ended, r.End, want)
		}
	}
	must.Do(t, h.Close())
}

// Newer records of the same runs do not make the list longer for ever.
func TestListIsWrittenAnew(t *testing.T) {
	m := newMemory()
	h, _ := onDisk(t, m)
	w := must.Get(h.Terminal(terminal("pty-a")))(t)
	must.Get(h.Terminal(terminal("pty-b")))(t)
	for i := range 3 * staleLines {
		r := w.Run()
		r.Problems.Errors = i
		must.Do(t, h.Put(r))
		if i%100 == 0 {
			must.Do(t, h.Sync(t.Context()))
		}
	}
	if lines := bytes.Count(m.file(t, ".", listName).data, []byte("\n")); lines > 2*staleLines {
		t.Errorf("the list has %d lines", lines)
	}
	if r := must.Get(h.Run("pty-a"))(t); r.Problems.Errors != 3*staleLines-1 {
		t.Errorf("the record is %+v", r)
	}
	if got := ids(h, Query{}); !slices.Equal(got, []string{"pty-b", "pty-a"}) {
		t.Errorf("the list has %q", got)
	}
	must.Do(t, h.Close())
}

// manyRuns returns a list of n commands, each with a line about its beginning.
func manyRuns(t testing.TB, n int) []byte {
	t.Helper()
	var list []byte
	for i := range n {
		id := fmt.Sprintf("pty-%08d", i/50)
		r := Run{ID: fmt.Sprintf("%s.%d", id, i%50+1), Terminal: id, Command: i%50 + 1, Line: "go test ./internal/thing -run 'TestSomething'", Dir: "/home/me/src/project", Started: time.Now(), Ended: time.Now(), End: 1000}
		line := must.Get(r.encode())(t)
		list = append(append(list, line...), line...)
	}
	return list
}

// A hundred thousand runs are listed, found and added to; nothing about them is kept in
// memory.
func TestManyRuns(t *testing.T) {
	n := testkit.Load(100_000, 2000)
	m := newMemory()
	m.root.names[listName] = &content{data: manyRuns(t, n)}
	h, _ := onDisk(t, m)
	if s := h.Status(); s.Runs != n {
		t.Errorf("there are %d runs", s.Runs)
	}
	must.Get(h.Terminal(terminal("pty-new")))(t)
	newest := []string{"pty-new", fmt.Sprintf("pty-%08d.50", n/50-1)}
	for r := range h.List(Query{}) {
		if r.ID != newest[0] {
			t.Errorf("run %s is next, want %s", r.ID, newest[0])
		}
		if newest = newest[1:]; len(newest) == 0 {
			break
		}
	}
	if got := ids(h, Query{Terminal: "pty-00000000"}); len(got) != 50 || got[49] != "pty-00000000.1" {
		t.Errorf("the oldest terminal has %q", got)
	}
	must.Get(h.Run("pty-00000000.1"))(t)
	must.Do(t, h.Close())
}

// unreplaceable is an FS that does not replace files that are open for reading.
type unreplaceable struct {
	*memory
	open map[string]int
}

type openSource struct {
	Source
	close func()
}

func (s openSource) Close() error {
	s.close()
	return s.Source.Close()
}

func (u *unreplaceable) Open(name string) (Source, error) {
	s, err := u.memory.Open(name)
	if err != nil {
		return nil, err
	}
	u.open[name]++
	return openSource{s, func() { u.open[name]-- }}, nil
}

func (u *unreplaceable) Rename(from, to string) error {
	if u.open[to] > 0 {
		return fmt.Errorf("%s is open", to)
	}
	return u.memory.Rename(from, to)
}

// Whoever reads the list slowly does not keep it from being replaced, and then goes on
// with what is left.
func TestForgetWhileTheListIsRead(t *testing.T) {
	h := must.Get(Open(Options{Dir: "d", Keep: 1000 * time.Hour, FS: &unreplaceable{newMemory(), map[string]int{}}}))(t)
	const all = 100
	at := time.Now().Add(-time.Hour)
	for i := range all {
		id := fmt.Sprintf("pty-%03d", i)
		w := must.Get(h.Terminal(Run{ID: id, Terminal: id, Started: at.Add(time.Duration(i) * time.Second), End: -1}))(t)
		r := w.Run()
		r.Ended, r.End = r.Started, 0
		must.Do(t, w.Finish(r))
	}
	must.Do(t, h.Sync(t.Context()))
	var got []string
	for r := range h.List(Query{}) {
		if got = append(got, r.ID); len(got) == 10 || len(got) == 30 {
			read, ahead := got[len(got)-1], fmt.Sprintf("pty-%03d", all-60-len(got)) // the last one, and one to come
			n, _, err := h.Forget(func(r Run) bool { return r.ID == read || r.ID == ahead })
			if n != 2 || err != nil {
				t.Fatalf("%d are forgotten, %v", n, err)
			}
		}
	}
	var want []string
	for i := all - 1; i >= 0; i-- {
		if i != all-60-10 && i != all-60-30 {
			want = append(want, fmt.Sprintf("pty-%03d", i))
		}
	}
	check.Equal(t, "the list", want, got)
	if left := ids(h, Query{}); len(left) != all-4 {
		t.Errorf("%d are left", len(left))
	}
}
