package uplink_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/jsonrpc"
)

// askRuns asks the machine as its host.
func (f *fakeHost) askRuns(t *testing.T, p ahp.RunsParams) (a ahp.RunsResult, err error) {
	t.Helper()
	f.mu.Lock()
	peer := f.peer
	f.mu.Unlock()
	err = peer.Call(t.Context(), ahp.MethodRuns, p, &a)
	return a, err
}

// codeOf returns the code of a refusal, 0 for an answer.
func codeOf(err error) jsonrpc.Code {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code
	}
	return 0
}

func keepsRuns() ahp.Meta {
	m := ahp.NewClientTerminals(30_000)
	m.Runs = true
	return m.Meta()
}

// A host whose marker says so may ask about earlier runs. The question comes with the
// reader, and with the terminal that it is about.
func TestAHostAsksAboutRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got uplink.Asked
		answer := ahp.RunsResult{Answer: []byte(`{"runs":[]}`)}
		f := &fakeHost{target: ahp.TargetClient, marker: keepsRuns()}
		w := fakeWorld(t, f, func(o *uplink.Options) {
			o.Runs = func(_ context.Context, q uplink.Asked) ahp.RunsResult { got = q; return answer }
		})
		h, _ := w.spawn(term.Spec{})
		pass(time.Second)
		q := ahp.RunsParams{Channel: f.uri(t), Reader: ahp.Reader{Names: []string{"ann", "group:web"}}, Tool: "verdict", Arguments: []byte(`{"names":["dev"]}`), Shows: 5000}
		a, err := f.askRuns(t, q)
		if err != nil || string(a.Answer) != `{"runs":[]}` || got.Terminal != h.ID() || got.Reader.Names[1] != "group:web" || string(got.Arguments) != `{"names":["dev"]}` || got.Tool != "verdict" || got.Shows != 5000 {
			t.Errorf("%+v, %v; asked %+v", a, err, got)
		}
		q.Channel = "ahp-terminal:/another"
		if a, err := f.askRuns(t, q); err != nil || !a.Unknown || a.Error != "no such terminal" {
			t.Errorf("about a terminal that was never lent there: %+v, %v", a, err)
		}
		q.Channel, answer.Answer = "", []byte(`{"x":"`+strings.Repeat("x", ahp.MaxRunsAnswer)+`"}`)
		if a, err := f.askRuns(t, q); err != nil || !strings.Contains(a.Error, "too long") || a.Answer != nil {
			t.Errorf("an answer that is too long: %d bytes, %q, %v", len(a.Answer), a.Error, err)
		}
		q.Reader.Names[0] = "a b"
		if _, err := f.askRuns(t, q); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("a name that is none: %v", err)
		}
	})
}

// Without both markers, the request does not exist.
func TestOnlyHostsWithTheMarkerAskAboutRuns(t *testing.T) {
	answers := func(o *uplink.Options) {
		o.Runs = func(context.Context, uplink.Asked) ahp.RunsResult { return ahp.RunsResult{Answer: []byte(`{}`)} }
	}
	for name, c := range map[string]struct {
		marker ahp.Meta
		change func(*uplink.Options)
	}{"the host's": {ahp.NewClientTerminals(30_000).Meta(), answers}, "the machine's": {keepsRuns(), nil}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHost{target: ahp.TargetClient, marker: c.marker}
				fakeWorld(t, f, c.change)
				if _, err := f.askRuns(t, ahp.RunsParams{Tool: "verdict"}); codeOf(err) != jsonrpc.CodeMethodNotFound {
					t.Errorf("without %s marker: %v", name, err)
				}
			})
		})
	}
}

// A host that asks too much at once, or for too long, is refused. After a pause it may
// ask again.
func TestAHostThatAsksTooMuchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := 5 * time.Second
		f := &fakeHost{target: ahp.TargetClient, marker: keepsRuns()}
		fakeWorld(t, f, func(o *uplink.Options) {
			o.Runs = func(ctx context.Context, _ uplink.Asked) ahp.RunsResult {
				select {
				case <-time.After(takes):
				case <-ctx.Done():
				}
				return ahp.RunsResult{Answer: []byte(`{}`)}
			}
		})
		var wg sync.WaitGroup
		var mu sync.Mutex
		counts := map[jsonrpc.Code]int{}
		for range 60 {
			wg.Go(func() {
				_, err := f.askRuns(t, ahp.RunsParams{Tool: "search_runs"})
				locked(&mu, func() { counts[codeOf(err)]++ })
			})
		}
		wg.Wait()
		if counts[jsonrpc.CodeOverloaded] < 42 || counts[0] == 0 || counts[0] > 18 {
			t.Errorf("of 60 questions at once: %v", counts)
		}
		for began := time.Now(); time.Since(began) < 10*time.Minute; {
			if _, err := f.askRuns(t, ahp.RunsParams{Tool: "search_runs"}); codeOf(err) == jsonrpc.CodeOverloaded {
				break
			}
		}
		if _, err := f.askRuns(t, ahp.RunsParams{Tool: "search_runs"}); codeOf(err) != jsonrpc.CodeOverloaded || !strings.Contains(err.Error(), "try again in a minute") {
			t.Errorf("after minutes of questions: %v", err)
		}
		time.Sleep(time.Minute)
		takes = 0
		for range 100 {
			if _, err := f.askRuns(t, ahp.RunsParams{Tool: "verdict"}); err != nil {
				t.Fatalf("a minute later: %v", err)
			}
		}
	})
}
