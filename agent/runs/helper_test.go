package runs_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/history"
	"tether/agent/redact"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

const (
	value  = "hunter2-value" // of a variable that is masked
	masked = "*************"
)

// world is a pool of fake terminals that is recorded.
type world struct {
	t        *testing.T
	pool     *term.Pool
	children map[term.ID]*testkit.Child
	history  *history.History
	runs     *runs.Runs
	stop     func(time.Duration)
	wrap     func(*testkit.Child) term.PTY // nil: children are as they are
}

// never are options of runs by which nothing below a directory is lent.
func never(top string) runs.Options {
	return runs.Options{Never: func(_ string, dirs ...string) (bool, <-chan struct{}) {
		return slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(d, top) }), nil
	}}
}

// open makes a world. Call it in a synctest bubble.
func open(t *testing.T, dir string, o runs.Options) *world {
	t.Helper()
	w := &world{t: t, children: map[term.ID]*testkit.Child{}}
	w.pool = term.NewPool(term.Options{
		Outward: must.Get(redact.Compile(redact.Options{Tokens: true}))(t),
		Secrets: func(env []string) []string { return redact.Values(env, []string{"*TOKEN*"}) },
		Start: func(id term.ID, _ pty.Command) (term.PTY, error) {
			w.children[id] = testkit.NewChild()
			if w.wrap != nil {
				return w.wrap(w.children[id]), nil
			}
			return w.children[id], nil
		},
	})
	w.record(dir, o)
	t.Cleanup(func() {
		w.stop(time.Minute)
		check.OK(t, w.pool.Close(context.Background()))
	})
	return w
}

// record records the pool's terminals, as another daemon does.
func (w *world) record(dir string, o runs.Options) {
	w.t.Helper()
	w.history = must.Get(history.Open(history.Options{Dir: filepath.Join(dir, "history"), Keep: 24 * time.Hour, MaxBytes: 256 << 20, Report: func(trouble string) {
		if trouble != "" {
			w.t.Error(trouble)
		}
	}}))(w.t)
	o.History, o.Access = w.history, w.pool.As(term.User)
	w.runs = runs.Open(o)
	w.stop = w.runs.Record(context.Background())
}

// spawn starts a terminal of the person.
func (w *world) spawn(s term.Spec) (term.Handle, *testkit.Child) {
	w.t.Helper()
	if s.Command == nil {
		s.Command = []string{"make", "check"}
	}
	if s.Cwd == "" {
		s.Cwd = testkit.Abs("/src")
	}
	s.Nonce, s.Env = "n0nce", []string{"MY_TOKEN=" + value}
	h := must.Get(w.pool.As(term.User).Spawn(s))(w.t)
	synctest.Wait()
	return h, w.children[h.ID()]
}

// settle lets the recorder write everything.
func settle() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

func prints(f *testkit.Child, text string) {
	f.Print(text)
	synctest.Wait()
}

func (w *world) person() runs.View { return w.runs.As(runs.Asker{Actor: term.User}) }

// read returns the text of a run as an asker sees it, with <n> for n bytes that are not
// there; "none" if there is no such run.
func read(t *testing.T, v runs.View, id string) string {
	t.Helper()
	one, err := v.Open(id)
	if errors.Is(err, agenttools.ErrNotFound) {
		return "none"
	}
	must.Do(t, err)
	rd := must.Get(one.Read(0))(t)
	defer rd.Close()
	var b strings.Builder
	at := int64(0)
	for buf := make([]byte, 4096); ; {
		ev, ok, err := rd.TryNext(buf)
		if err == io.EOF || err == nil && !ok {
			return b.String()
		}
		must.Do(t, err)
		if ev.Lost > 0 {
			b.WriteString("<" + strings.Repeat(".", int(ev.Lost)) + ">")
		}
		b.Write(ev.Data)
		if at += ev.Lost + int64(len(ev.Data)); at != ev.Off {
			t.Fatalf("an event ends at %d, want %d: %+v", ev.Off, at, ev)
		}
	}
}

// gap is how read shows that a text is not there.
func gap(text string) string { return "<" + strings.Repeat(".", len(text)) + ">" }

// onDisk returns whether some text is in a file of the history, as it is or compressed.
func (w *world) all() (list []history.Run) {
	return slices.Collect(w.person().List(history.Query{}))
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }
