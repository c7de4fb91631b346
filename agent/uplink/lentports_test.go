package uplink_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/vocab"
)

// portsHost is a fake host that records which ports it is told.
type portsHost struct {
	audienceHost

	mu3  sync.Mutex
	open []string
}

func newPortsHost(w *world, takes bool) *portsHost {
	m := ahp.NewClientTerminals(30_000)
	m.Resume = false // it acknowledges nothing
	m.Audiences, m.Ports = &ahp.Audiences{Version: 1}, takes
	f := &portsHost{audienceHost: audienceHost{fakeHost: fakeHost{marker: m.Meta(), target: ahp.TargetClient}}}
	w.serve = func(ctx context.Context, ch jsonrpc.Channel) { f.serveAs(ctx, ch, f) }
	return f
}

func (f *portsHost) Handle(ctx context.Context, r *jsonrpc.Request) {
	note := func(how string, all []ahp.LentPort) {
		f.mu3.Lock()
		defer f.mu3.Unlock()
		for _, p := range all {
			how += fmt.Sprintf(" %d", p.Port)
			if p.Write {
				how += "w"
			}
			if p.UntilMs > 0 {
				how += "u"
			}
		}
		f.open = append(f.open, how)
	}
	switch r.Method {
	case ahp.MethodCreateTerminal:
		var p ahp.CreateTerminalParams
		ahp.DecodeParams(r.Params, &p)
		note("announced", ahp.FindPorts(p.Meta))
	case ahp.MethodLentPorts:
		var p ahp.LentPortsParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			r.ReplyError(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err))
			return
		}
		note("now", p.Ports)
		r.Reply(struct{}{})
		return
	}
	f.audienceHost.Handle(ctx, r)
}

// told returns what the host was told since the last call.
func (f *portsHost) told() []string {
	synctest.Wait()
	f.mu3.Lock()
	defer f.mu3.Unlock()
	all := f.open
	f.open = nil
	return all
}

// A host is told of lent ports when a terminal is announced and at once when they change,
// whatever changes them; of closed ones and those that are not known yet it is not. A
// host whose marker has none is told nothing.
func TestLentPortsAreTold(t *testing.T) {
	for _, takes := range []bool{true, false} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, host.Options{}, nil)
				w.cut(true)
				f := newPortsHost(w, takes)
				h, child := w.spawn(term.Spec{Ports: []int{3000, loans.AutoPort}})
				w.cut(false)
				w.link.Nudge()
				w.online()
				want := func(what string, all ...string) {
					t.Helper()
					if !takes {
						all = map[bool][]string{true: {"announced"}}[what == "announced"]
					}
					if got := f.told(); !slices.Equal(got, all) {
						t.Errorf("%s: told %q, want %q", what, got, all)
					}
				}
				want("announced", "announced 3000")
				if err := w.link.TakesPorts(); (err == nil) != takes || err != nil && !errors.Is(err, uplink.ErrNoPorts) {
					t.Errorf("it takes ports: %v", err)
				}
				must.Do(t, h.LendTo("lab", loans.Change{Ports: []vocab.LentPort{{Port: 3001, Write: true, Until: time.Now().Add(time.Hour)}}}))
				want("another port", "now 3000 3001wu")
				must.Do(t, h.ChangeAudience("lab", loans.AudienceChange{Grant: []string{"bob"}}))
				h.CountFetch("lab", 3000)
				want("another audience")
				h.FoundPorts([]int{5173})
				want("found", "now 3000 3001wu 5173")
				h.ClosePort("lab", 3000, "taken")
				want("closed", "now 3001wu 5173")
				time.Sleep(time.Hour)
				want("its time is over", "now 5173")
				must.Do(t, h.DropPorts("lab", loans.AutoPort))
				want("unlent", "now")
				must.Do(t, h.LendTo("lab", loans.Change{Ports: []vocab.LentPort{{Port: 3000}}}))
				want("again", "now 3000")
				child.End(0)
				want("exited", "now")
			})
		})
	}
}
