package agent_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/history"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/roam"
)

// stalled is a disk that stands still in syncs, or also in writes.
type stalled struct {
	history.FS
	syncs, writes atomic.Bool
	goesOn        chan struct{}
	waiting       atomic.Int32
}

func (s *stalled) wait(stands *atomic.Bool) {
	if stands.Load() {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		<-s.goesOn
	}
}

// Append implements history.FS.
func (s *stalled) Append(name string) (history.File, error) {
	f, err := s.FS.Append(name)
	return &stalledFile{f, s}, err
}

// SyncDir implements history.FS.
func (s *stalled) SyncDir(name string) error {
	s.wait(&s.syncs)
	return s.FS.SyncDir(name)
}

type stalledFile struct {
	history.File
	s *stalled
}

// Write implements history.File.
func (f *stalledFile) Write(p []byte) (int, error) {
	f.s.wait(&f.s.writes)
	return f.File.Write(p)
}

// Sync implements history.File.
func (f *stalledFile) Sync() error {
	f.s.wait(&f.s.syncs)
	return f.File.Sync()
}

// A disk that stands still holds up neither the end of a daemon nor the next one. What
// was printed is kept if the disk still takes what is written; nothing is written after
// the end.
func TestEndsThoughTheDiskStandsStill(t *testing.T) {
	t.Run("syncs", func(t *testing.T) { testStandsStill(t, false) })
	t.Run("writes", func(t *testing.T) { testStandsStill(t, true) })
}

// Nor does anything else for which the end waits; what was printed is written even then.
func TestEndsThoughSomethingHangs(t *testing.T) {
	where := home(t)
	goesOn := make(chan struct{})
	defer close(goesOn)
	d := start(t, agent.Config{Dirs: where, Timeout: 500 * time.Millisecond, Watch: func(context.Context, func(roam.Change)) error {
		<-goesOn
		return nil
	}})
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{URL: startHost(t, "right"), Token: "right", Name: "lab"}))(t)
	x := must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Line: greeting(), Cwd: testkit.Abs("/"), Env: os.Environ()}))(t)
	must.Get(d.client.Wait(t.Context(), x.ID, localclient.WaitOptions{Pattern: "hello", Timeout: patience}))(t)
	d.stop()
	kept := must.Get(history.Open(history.Options{Dir: agent.HistoryDir(where), Keep: time.Hour}))(t)
	if r := must.Get(kept.Run(x.ID))(t); r.Running() || r.Lost {
		t.Errorf("kept is %+v", r)
	}
	start(t, agent.Config{Dirs: where}).end()
}

func testStandsStill(t *testing.T, writes bool) {
	where := home(t)
	disk := &stalled{FS: history.Disk(agent.HistoryDir(where)), goesOn: make(chan struct{})}
	d := start(t, agent.Config{Dirs: where, HistoryFS: disk, Timeout: time.Second})
	x := must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Line: greeting(), Cwd: testkit.Abs("/"), Env: os.Environ()}))(t)
	must.Get(d.client.Wait(t.Context(), x.ID, localclient.WaitOptions{Pattern: "hello", Timeout: patience}))(t)
	testkit.Eventually(t, patience, "it is recorded", func() bool {
		_, err := os.Stat(filepath.Join(agent.HistoryDir(where), x.ID))
		return err == nil
	})
	disk.syncs.Store(true)
	disk.writes.Store(writes)
	d.stop()
	if pid := ipc.Holder(filepath.Join(where.Runtime, localapi.LockName)); pid != 0 {
		t.Errorf("the lock is held by %d", pid)
	}
	start(t, agent.Config{Dirs: where}).end()
	before := filesIn(t, agent.HistoryDir(where))
	if disk.waiting.Load() == 0 {
		t.Error("nothing waits for the disk")
	}
	if kept := must.Get(history.Open(history.Options{Dir: agent.HistoryDir(where), Keep: time.Hour}))(t); !writes {
		r := must.Get(kept.Run(x.ID))(t)
		if r.Running() || r.Lost || r.End < int64(len("hello")) {
			t.Errorf("kept is %+v", r)
		}
	}
	close(disk.goesOn)
	testkit.Eventually(t, patience, "nothing waits", func() bool { return disk.waiting.Load() == 0 })
	if !writes { // the write that the system has begun cannot be undone
		check.Equal(t, "after the disk went on", before, filesIn(t, agent.HistoryDir(where)))
	}
}

// filesIn returns the sizes of all files in a directory.
func filesIn(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			all[path] = info.Size()
		}
		return err
	}))
	return all
}
