package events

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"tether/agenttools"
	"tether/vocab"
)

// judged are terminals whose runs are judged.
type judged struct {
	agenttools.Runs
	mu    sync.Mutex
	list  []agenttools.VerdictChange
	moved chan struct{}
}

// keeper makes judged a Keeper.
type keeper struct {
	*fakes
	j *judged
}

func (k keeper) Runs() agenttools.Runs { return k.j }

func (j *judged) VerdictChanges(ctx context.Context, n int64) ([]agenttools.VerdictChange, int64, error) {
	for {
		j.mu.Lock()
		list, moved := slices.Clone(j.list), j.moved
		j.mu.Unlock()
		if n < 0 {
			return nil, int64(len(list)), nil
		}
		if int64(len(list)) > n {
			return list[n:], int64(len(list)), nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, n, ctx.Err()
		}
	}
}

// change is a change of a verdict.
func (j *judged) change(terminal, run, to string) {
	from := map[string]string{"good": "failing", "failing": "good"}[to]
	j.mu.Lock()
	j.list = append(j.list, agenttools.VerdictChange{Terminal: terminal, Run: run, Command: "make", From: from, To: to, Commit: "3f2a91c+changes", Errors: 1, First: []string{"a.c:1: error: x"}})
	close(j.moved)
	j.moved = make(chan struct{})
	j.mu.Unlock()
	synctest.Wait()
}

// A build that breaks is an event, also after the exit of its terminal, to those who may
// see the terminal and asked for it.
func TestVerdictChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		j := &judged{moved: make(chan struct{})}
		web, _ := f.add("pty-web"), f.add("pty-other")
		j.change("pty-web", "pty-web.1", "good") // nobody listens yet
		e := New(Options{Terminals: keeper{f, j}})
		defer e.Close()
		all, _, stopAll := start(t, e, request(VerdictChanged, nil, ""))
		one, ended, stopOne := start(t, e, request(VerdictChanged, args{"terminalId": "pty-web", "to": "failing"}, ""))
		j.change("pty-web", "pty-web.2", "failing")
		j.change("pty-other", "pty-other", "failing")
		j.change("pty-hidden", "pty-hidden", "failing")
		j.change("pty-web", "pty-web.3", "good")
		web.change(func() { web.info.Exit = &vocab.Exit{Code: 1} })
		f.tell()
		synctest.Wait()
		j.change("pty-web", "pty-web", "failing")
		runs := func(r *record) (list []any) {
			for _, ev := range r.told() {
				list = append(list, ev.Data["run"])
			}
			return list
		}
		if got := fmt.Sprint(runs(all)); got != "[pty-web.2 pty-other pty-web.3 pty-web]" {
			t.Errorf("all: %s", got)
		}
		if got := fmt.Sprint(runs(one)); got != "[pty-web.2 pty-web]" {
			t.Errorf("one: %s", got)
		}
		ev := one.told()[0]
		if got, want := Text(&ev), "pty-web: make is failing now at 3f2a91c+changes; first problem: a.c:1: error: x"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if ev.Meta[MetaUntrusted] != true || ev.Data["terminalId"] != "pty-web" || ev.Data["from"] != "good" {
			t.Errorf("%+v", ev)
		}
		f.remove(web)
		synctest.Wait()
		if err := <-ended; err == nil {
			t.Error("a stream about a terminal that is gone ends without an error")
		}
		if _, err := e.Poll(t.Context(), request(VerdictChanged, args{"to": "unknown"}, "")); err == nil {
			t.Error("a verdict that is none is accepted")
		}
		stopAll()
		stopOne()
		synctest.Wait()
	})
}

// Where runs are not judged, there is no such event.
func TestNoVerdicts(t *testing.T) {
	e := New(Options{Terminals: &fakes{}})
	defer e.Close()
	if slices.ContainsFunc(e.Kinds(), func(k Kind) bool { return k.Name == VerdictChanged }) {
		t.Error("the kind is offered")
	}
}
