package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// record holds the events of a stream.
type record struct {
	mu      sync.Mutex // the race detector does not know that fake time orders
	active  int
	lost    int
	beats   int
	events  []Event
	cursor  string
	stop    func() // called at each event, if not nil
	stopped error
}

func (r *record) Active(cursor string, truncated bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active++
	if truncated {
		r.lost++
	}
	r.cursor = cursor
	return nil
}

func (r *record) Event(ev Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
	r.cursor = *ev.Cursor
	if r.stop != nil {
		r.stop()
	}
	return r.stopped
}

func (r *record) Heartbeat(cursor string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats, r.cursor = r.beats+1, cursor
	return nil
}

// told is all events so far.
func (r *record) told() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *record) lines() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ev := range r.events {
		s := fmt.Sprint(ev.Data["line"])
		if n, ok := ev.Data["count"].(int); ok && n > 1 {
			s += fmt.Sprintf(" (%d, %v)", n, ev.Data["last"])
		}
		all = append(all, s)
	}
	return all
}

func request(name string, args map[string]any, cursor string) *Request {
	r := &Request{Name: name}
	if args != nil {
		r.Arguments, _ = json.Marshal(args)
	}
	if cursor != "" {
		r.Cursor = &cursor
	}
	return r
}

func poll(t *testing.T, e *Engine, r *Request) (lines []string, page *Page) {
	t.Helper()
	page = must.Get(e.Poll(t.Context(), r))(t)
	return (&record{events: page.Events}).lines(), page
}

type args = map[string]any

func TestPollLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		web := f.add("pty-web")
		e := New(Options{Terminals: f})
		defer e.Close()
		ask := request(Line, args{"terminalId": "pty-web", "pattern": "error"}, "")
		web.print("error before\nhalf an error")
		got, page := poll(t, e, ask)
		if len(got) > 0 || page.Truncated || page.Cursor == "" {
			t.Fatalf("from now on: %q, %+v", got, page)
		}
		web.print(" goes on\nfine\nerror one\r\n\x1b[31mer\x1b[0mror two\nlast error")
		got, page = poll(t, e, request(ask.Name, args{"terminalId": "pty-web", "pattern": "error"}, page.Cursor))
		if fmt.Sprint(got) != "[error one error two last error]" {
			t.Errorf("got %q", got)
		}
		cursor := page.Cursor
		web.print(" and more\nerror three\n")
		got, page = poll(t, e, request(Line, args{"terminalId": "pty-web", "pattern": "error"}, cursor))
		if fmt.Sprint(got) != "[error three]" || page.More || page.Truncated {
			t.Errorf("after a line that stood still: %q, %+v", got, page)
		}
		again, _ := poll(t, e, request(Line, args{"terminalId": "pty-web", "pattern": "error"}, cursor))
		if fmt.Sprint(again) != fmt.Sprint(got) {
			t.Errorf("the same cursor tells %q, then %q", got, again)
		}
		_, page = poll(t, e, request(Line, args{"terminalId": "pty-web", "pattern": "error"}, "garbage"))
		if !page.Truncated || page.Cursor == "" {
			t.Errorf("of garbage: %+v", page)
		}
	})
}

// start runs a stream until the test ends or it does.
func start(t *testing.T, e *Engine, r *Request) (*record, chan error, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	rec, ended := &record{}, make(chan error, 1)
	go func() { ended <- e.Stream(ctx, r, rec) }()
	synctest.Wait()
	return rec, ended, cancel
}

// endsAtOnce ends its stream when that has begun.
type endsAtOnce struct {
	record
	end func()
}

func (o *endsAtOnce) Active(string, bool) error {
	o.end()
	return nil
}

// TestStreamsBeginBesideTheRoster begins streams while the roster applies its first list:
// the race detector sees what both touch, and nothing is followed after a stream's end.
func TestStreamsBeginBesideTheRoster(t *testing.T) {
	f := &fakes{}
	f.add("pty-web")
	over := f.add("pty-done")
	over.exit(1)
	for range 300 {
		for _, r := range []*Request{
			request(Exited, args{"terminalId": "pty-done"}, ""), request(Exited, nil, ""),
			request(Line, args{"terminalId": "pty-web", "pattern": "x"}, ""), request(Line, args{"pattern": "y"}, ""),
		} {
			e := New(Options{Terminals: f}) // whose roster begins with the first stream
			ctx, cancel := context.WithCancel(t.Context())
			if err := e.Stream(ctx, r, &endsAtOnce{end: cancel}); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v", r.Name, err)
			}
			cancel()
			e.mu.Lock()
			left := len(e.watches)
			e.mu.Unlock()
			if left != 0 {
				t.Errorf("%s: %d watches are left of a stream that has ended", r.Name, left)
			}
			e.Close()
		}
	}
}

func TestStreamLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		web := f.add("pty-web")
		e := New(Options{Terminals: f})
		defer e.Close()
		web.print("old error\n")
		rec, _, cancel := start(t, e, request(Line, args{"pattern": "error"}, ""))
		defer cancel()
		web.print("error 1\nfine\n")
		synctest.Wait()
		if fmt.Sprint(rec.lines()) != "[error 1]" {
			t.Errorf("at once: %q", rec.lines())
		}
		for i := range 500 {
			web.print("error %d\n", i+2)
		}
		synctest.Wait()
		if len(rec.told()) != 1 {
			t.Errorf("within the same second: %q", rec.lines())
		}
		db := f.add("pty-db")
		time.Sleep(100 * time.Millisecond)
		db.print("error of another\n")
		synctest.Wait()
		if got := rec.lines(); got[len(got)-1] != "error of another" {
			t.Errorf("another terminal waits: %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := rec.lines(); len(got) != 3 || got[2] != "error 2 (500, error 501)" {
			t.Errorf("a flood: %q", got)
		}
		web.print("Password: error? ")
		time.Sleep(1500 * time.Millisecond)
		web.print("yes\n")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if got := rec.lines(); len(got) != 4 || got[3] != "Password: error?" {
			t.Errorf("a line that stands still: %q", got)
		}
		web.print("50%% error")
		time.Sleep(2 * time.Second)
		web.print("\r\x1b[Kok")
		time.Sleep(2 * time.Second)
		web.print("\r\x1b[K50%% error")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := rec.lines(); len(got) != 6 || got[5] != "50% error" {
			t.Errorf("a status line: %q", got)
		}
		time.Sleep(Heartbeat)
		synctest.Wait()
		if rec.beats == 0 || rec.active != 1 {
			t.Errorf("%d heartbeats, %d active", rec.beats, rec.active)
		}
		// A cursor goes on where it was, through a poll as well.
		web.print("\nerror last\n")
		time.Sleep(2 * time.Second)
		cancel()
		synctest.Wait()
		got, _ := poll(t, e, request(Line, args{"pattern": "error"}, rec.cursor))
		if len(got) != 0 {
			t.Errorf("after the last event: %q", got)
		}
	})
}

func TestWithdrawnAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		web, db := f.add("pty-web"), f.add("pty-db")
		e := New(Options{Terminals: f})
		defer e.Close()
		one, ended, _ := start(t, e, request(Line, args{"pattern": "x", "terminalId": "pty-web"}, ""))
		all, _, _ := start(t, e, request(Line, args{"pattern": "x"}, ""))
		idle, idleEnded, _ := start(t, e, request(Idle, args{"terminalId": "pty-web", "idleMs": 500}, ""))
		exits, exitsEnded, _ := start(t, e, request(Exited, args{"terminalId": "pty-db"}, ""))
		web.print("x1\n")
		synctest.Wait()
		web.print("x2\n")
		f.remove(web)
		time.Sleep(100 * time.Millisecond)
		var why *Error
		if err := <-ended; !errors.As(err, &why) || why.Reason != Forbidden {
			t.Errorf("ended with %v", err)
		}
		if err := <-idleEnded; !errors.As(err, &why) || why.Reason != Forbidden {
			t.Errorf("ended with %v", err)
		}
		time.Sleep(3 * time.Second)
		if len(one.told()) != 1 || len(all.told()) != 1 || len(idle.told()) != 0 {
			t.Errorf("after it was withdrawn: %q, %q, %d", one.lines(), all.lines(), len(idle.told()))
		}
		db.print("bye\n")
		db.exit(3)
		synctest.Wait()
		time.Sleep(time.Second)
		f.remove(db)
		if err := <-exitsEnded; err != nil {
			t.Errorf("a terminal that is forgotten ends with %v", err)
		}
		if len(exits.told()) != 1 || exits.told()[0].Data["exitCode"] != 3 || exits.told()[0].Data["lastLine"] != "bye" {
			t.Errorf("the exit: %+v", exits.told())
		}
		for _, bad := range []*Request{request(Line, args{"pattern": "x", "terminalId": "pty-web"}, ""), request(Line, args{"pattern": "x", "terminalId": "pty-none"}, "")} {
			if _, err := e.Poll(t.Context(), bad); !errors.As(err, &why) || why.Reason != Forbidden {
				t.Errorf("an unknown terminal: %v", err)
			}
		}
	})
}

func TestLossIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		web := f.add("pty-web")
		web.limit = 1000
		e := New(Options{Terminals: f})
		defer e.Close()
		a := args{"terminalId": "pty-web", "pattern": "error"}
		_, page := poll(t, e, request(Line, a, ""))
		for i := range 200 {
			web.print("error %d\n", i)
		}
		got, page := poll(t, e, request(Line, a, page.Cursor))
		if !page.Truncated || len(got) == 0 {
			t.Errorf("%q, %+v", got, page)
		}
		if _, page = poll(t, e, request(Line, a, page.Cursor)); page.Truncated || len(page.Events) > 0 {
			t.Errorf("told again: %+v", page)
		}
	})
}

// A subscription to some terminals reads no others, now and later.
func TestOnlySomeTerminals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		web, db := f.add("pty-web"), f.add("pty-db")
		e := New(Options{Terminals: f})
		defer e.Close()
		var all []*record
		for _, kind := range []string{Exited, AwaitingInput} {
			r := request(kind, nil, "")
			r.Only = []string{"pty-web", "pty-later"}
			rec, _, cancel := start(t, e, r)
			defer cancel()
			all = append(all, rec)
		}
		everything, _, cancel := start(t, e, request(AwaitingInput, nil, "")) // with a source of its own
		defer cancel()
		later, other := f.add("pty-later"), f.add("pty-other")
		synctest.Wait()
		for _, one := range []*fake{web, db, later, other} {
			one.change(func() {
				one.state = vocab.State{Keyboard: vocab.Keyboard{Input: vocab.InputAwaiting, InputSince: time.Now()}}
			})
			synctest.Wait()
			one.exit(1)
			time.Sleep(2 * time.Second)
		}
		for _, rec := range all {
			if got := rec.told(); len(got) != 2 || got[0].Data["terminalId"] != "pty-web" || got[1].Data["terminalId"] != "pty-later" {
				t.Errorf("%+v", got)
			}
		}
		if got := everything.told(); len(got) != 4 {
			t.Errorf("of all: %+v", got)
		}
	})
}

func TestCommandsAndMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		sh := f.add("pty-sh")
		var open atomic.Pointer[map[string][]Port]
		open.Store(&map[string][]Port{})
		matching := agenttools.NewMatching(nil, nil)
		defer matching.Close()
		e := New(Options{Terminals: f, Ports: func() (map[string][]Port, error) { return *open.Load(), nil }, Problems: matching})
		defer e.Close()
		failed, _, _ := start(t, e, request(CommandFinished, args{"failedOnly": true}, ""))
		idle, _, _ := start(t, e, request(Idle, args{"idleMs": 1000}, ""))
		ports, _, _ := start(t, e, request(PortOpened, args{"port": 5173}, ""))
		closed, _, _ := start(t, e, request(PortClosed, nil, ""))
		wrong, _, _ := start(t, e, request(Problems, nil, ""))
		waits, _, _ := start(t, e, request(AwaitingInput, nil, ""))
		_, page := poll(t, e, request(CommandFinished, nil, ""))
		zero, one := 0, 1
		sh.print("out\n")
		sh.finish(vocab.Command{N: 1, Line: new("make"), Exit: &zero})
		sh.print("$ ")
		sh.finish(vocab.Command{N: 2, Line: new("make test"), Exit: &one})
		sh.finish(vocab.Command{N: 3, Line: new("make again"), Exit: &one})
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		// The second one may still be part of the first event, or is told a second later.
		if got := fmt.Sprint(failed.lines()); got != "[make test (2, make again)]" && got != "[make test make again]" {
			t.Errorf("failed commands: %q", got)
		}
		got, page := poll(t, e, request(CommandFinished, nil, page.Cursor))
		if fmt.Sprint(got) != "[make make test make again]" {
			t.Errorf("commands: %q", got)
		}
		if got, _ = poll(t, e, request(CommandFinished, nil, page.Cursor)); len(got) > 0 {
			t.Errorf("told again: %q", got)
		}
		if len(idle.told()) != 1 || idle.told()[0].Data["lastLine"] != "$" {
			t.Errorf("idle: %+v", idle.told())
		}
		open.Store(&map[string][]Port{"pty-sh": {{Number: 5173, Address: "localhost:5173"}, {Number: 1, Address: "localhost:1"}}})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(ports.told()) != 1 || ports.told()[0].Data["url"] != "http://localhost:5173/" {
			t.Errorf("ports: %+v", ports.told())
		}
		open.Store(&map[string][]Port{"pty-sh": {{Number: 1, Address: "localhost:1"}}})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(closed.told()) != 1 || fmt.Sprint(closed.told()[0].Data["port"]) != "5173" || len(ports.told()) != 1 {
			t.Errorf("a closed port: %+v", closed.told())
		}
		sh.print("\n10:00:00 - Starting compilation in watch mode...\nsrc/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n10:00:01 - Found 1 error. Watching for file changes.\n")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := wrong.told(); len(got) != 1 || got[0].Data["new"] != 1 || got[0].Data["cleared"] != 0 || got[0].Data["open"] != 1 {
			t.Errorf("a problem: %+v", got)
		}
		sh.print("10:00:09 - File change detected. Starting incremental compilation...\n10:00:10 - Found 0 errors. Watching for file changes.\n")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := wrong.told(); len(got) != 2 || got[1].Data["new"] != 0 || got[1].Data["cleared"] != 1 || got[1].Data["open"] != 0 {
			t.Errorf("a problem that is cleared: %+v", got)
		}
		sh.change(func() {
			sh.state = vocab.State{Keyboard: vocab.Keyboard{Input: vocab.InputAwaiting, Prompt: "Overwrite? ", InputSince: time.Now()}}
		})
		synctest.Wait()
		if len(waits.told()) != 1 || waits.told()[0].Data["promptLine"] != "Overwrite? " {
			t.Errorf("awaiting: %+v", waits.told())
		}
	})
}

// listsLate has terminals that begin after a source, and before its first list.
type listsLate struct {
	*fakes
	before func()
}

func (l *listsLate) List() []agenttools.Info {
	l.before()
	return l.fakes.List()
}

func TestTerminalBeginsBeforeTheFirstList(t *testing.T) {
	for machines, want := range map[bool]string{false: "[pty-new]", true: "[]"} {
		synctest.Test(t, func(t *testing.T) {
			l := &listsLate{fakes: &fakes{}}
			failing := func(id string) {
				l.add(id).print("\n10:00:00 - Starting compilation in watch mode...\nsrc/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n10:00:01 - Found 1 error. Watching for file changes.\n")
			}
			failing("pty-old")
			time.Sleep(time.Second)
			begin := sync.OnceFunc(func() { failing("pty-new") })
			l.before = func() {
				time.Sleep(time.Second)
				begin()
			}
			matching := agenttools.NewMatching(nil, nil)
			defer matching.Close()
			e := New(Options{Terminals: l, Problems: matching, Machines: machines})
			defer e.Close()
			rec, _, _ := start(t, e, request(Problems, nil, ""))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			told := []any{}
			for _, ev := range rec.told() {
				told = append(told, ev.Data["terminalId"])
			}
			if got := fmt.Sprint(told); got != want {
				t.Errorf("on several machines %v: problems of %s are news, want %s", machines, got, want)
			}
		})
	}
}

// Subscriptions that begin while a terminal prints are told each match once, and then
// share one reader.
func TestJoinWhileItPrints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		web := f.add("pty-web")
		e := New(Options{Terminals: f})
		defer e.Close()
		const streams, lines = 10, 500
		var recs []*record
		for i := range lines {
			web.print("match %d\nother %[1]d\nmatch", i)
			web.print("ing too\n")
			if i%(lines/streams) == 0 {
				r := request(Line, args{"terminalId": "pty-web", "pattern": `^match\w* `}, "")
				r.Oldest = true
				rec, _, _ := start(t, e, r)
				recs = append(recs, rec)
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for i, rec := range recs {
			n := 0
			for _, ev := range rec.told() {
				n += ev.Data["count"].(int)
			}
			if n != 2*lines || rec.lost > 0 {
				t.Errorf("stream %d: %d matches, %d losses", i, n, rec.lost)
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if w := e.watches[watchKey{"pty-web", false}]; len(w.parts) != streams {
			t.Errorf("%d of %d subscriptions share a reader", len(w.parts), streams)
		}
	})
}
