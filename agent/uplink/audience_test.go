package uplink_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/vocab"
)

// audienceHost is a fake host that separates audiences, and records received messages in
// order.
type audienceHost struct {
	fakeHost
	unknown []string // names that it refuses
	// refuseShares has it refuse every share.
	refuseShares bool

	mu2  sync.Mutex
	told []ahp.Audience
	seen []string // "audience" and texts
}

func newAudienceHost(w *world, unknown ...string) *audienceHost {
	m := ahp.NewClientTerminals(30_000)
	m.Resume = false // this host acknowledges nothing by itself
	m.Audiences, m.Shares = &ahp.Audiences{Version: 1, Owner: "ann\x1b[2J"}, true
	f := &audienceHost{fakeHost: fakeHost{marker: m.Meta(), target: ahp.TargetClient}, unknown: unknown}
	w.serve = f.serve
	return f
}

func (f *audienceHost) serve(ctx context.Context, ch jsonrpc.Channel) { f.serveAs(ctx, ch, f) }

func (f *audienceHost) serveAs(ctx context.Context, ch jsonrpc.Channel, as jsonrpc.Handler) {
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: as})
	f.fakeHost.mu.Lock()
	f.peer = p
	if f.text == nil {
		f.text, f.exited = map[string]string{}, map[string]*int64{}
	}
	f.fakeHost.mu.Unlock()
	p.Run(ctx)
}

func (f *audienceHost) Handle(ctx context.Context, r *jsonrpc.Request) {
	switch r.Method {
	case ahp.MethodCreateTerminal:
		var p ahp.CreateTerminalParams
		ahp.DecodeParams(r.Params, &p)
		if a, ok, err := ahp.FindAudience(p.Meta); ok && err == nil {
			f.note(a)
		}
	case ahp.MethodDispatchAction:
		var d ahp.Dispatch
		if d.Decode(r.Params) == nil && d.Kind == ahp.ActionTerminalOutput {
			f.mu2.Lock()
			f.seen = append(f.seen, string(d.Data))
			f.mu2.Unlock()
		}
	case ahp.MethodAudience:
		var p ahp.AudienceParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			r.ReplyError(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err))
			return
		}
		refused := ahp.RefusedNames{}
		for _, g := range p.Grants {
			if slices.Contains(f.unknown, g.To) {
				refused.Names = append(refused.Names, g.To)
			}
		}
		if len(refused.Names) > 0 {
			data, _ := json.Marshal(refused)
			r.ReplyError(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such names", Data: data})
			return
		}
		if p.Channel != "" {
			f.note(p.Audience)
		}
		r.Reply(struct{}{})
		return
	case ahp.MethodShare:
		var p ahp.ShareParams
		err := ahp.DecodeParams(r.Params, &p)
		f.mu2.Lock()
		f.seen = append(f.seen, "share "+p.ID)
		refuse := f.refuseShares
		f.mu2.Unlock()
		if err != nil || refuse {
			r.ReplyError(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no links here: %v", err))
			return
		}
		r.Reply(ahp.ShareResult{URL: "https://host.example/s/#"})
		return
	case ahp.MethodUnshare:
		var p ahp.UnshareParams
		ahp.DecodeParams(r.Params, &p)
		f.mu2.Lock()
		f.seen = append(f.seen, "unshare "+p.ID)
		f.mu2.Unlock()
		r.Reply(struct{}{})
		return
	}
	f.fakeHost.Handle(ctx, r)
}

func (f *audienceHost) note(a ahp.Audience) {
	f.mu2.Lock()
	defer f.mu2.Unlock()
	f.told, f.seen = append(f.told, a), append(f.seen, "audience")
}

// last is the audience that it was told last, and everything in order.
func (f *audienceHost) last() (a ahp.Audience, seen []string) {
	synctest.Wait()
	f.mu2.Lock()
	defer f.mu2.Unlock()
	if len(f.told) > 0 {
		a = f.told[len(f.told)-1]
	}
	return a, slices.Clone(f.seen)
}

// The host gets the audience with the announcement, and changes in the order of the
// output; after an outage before any output.
func TestAudienceIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, func(o *uplink.Options) { o.HostGrants = true })
		w.cut(true)
		f := newAudienceHost(w)
		h, child := w.spawn(term.Spec{Audience: []string{"bob"}})
		w.cut(false)
		w.link.Nudge()
		w.online()
		if a, _ := f.last(); !cmp.Equal(a, ahp.Audience{Grants: []ahp.Grant{{To: "bob"}}, HostGrants: true}) {
			t.Errorf("announced to %+v", a)
		}
		prints(child, "one")
		must.Do(t, h.LendTo("lab", loans.Change{Audience: loans.AudienceChange{Grant: []string{"group:web"}, FromNow: true}}))
		if !w.link.AudienceTold(t.Context(), h) {
			t.Error("the host was not told of the grant")
		}
		prints(child, "two")
		must.Do(t, h.ChangeAudience("lab", loans.AudienceChange{Deny: []string{"bob"}}))
		a, seen := f.last()
		want := ahp.Audience{Grants: []ahp.Grant{{To: "group:web", From: 3}}, Denied: []string{"bob"}, HostGrants: true}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"audience", `"one"`, "audience", `"two"`, "audience"}, seen); diff != "" {
			t.Errorf("order: %s", diff)
		}
		w.cut(true)
		must.Do(t, h.ChangeAudience("lab", loans.AudienceChange{Drop: []string{"group:web"}}))
		child.Print("three")
		if w.link.AudienceTold(t.Context(), h) {
			t.Error("a host that is away was told")
		}
		w.cut(false)
		w.link.Nudge()
		w.online()
		a, seen = f.last()
		if len(seen) < 7 || seen[5] != "audience" || len(a.Grants) > 0 {
			t.Errorf("after the outage %+v, %q", a, seen)
		}
	})
}

// A terminal that has exited is not published any more, but its audience still changes.
func TestAudienceOfAnExitedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.cut(true)
		f := newAudienceHost(w, "gone")
		w.cut(false)
		w.link.Nudge()
		w.online()
		h, child := w.spawn(term.Spec{Audience: []string{"bob", "gone"}})
		child.End(0)
		synctest.Wait()
		must.Do(t, h.ChangeAudience("lab", loans.AudienceChange{Deny: []string{"bob"}}))
		// A name that the host does not know any more keeps nobody from being denied.
		if a, _ := f.last(); !cmp.Equal(a, ahp.Audience{Denied: []string{"bob"}}) {
			t.Errorf("told %+v", a)
		}
	})
}

// A host that shows everything to everybody does not get terminals for some; names are
// checked before.
func TestHostsThatKeepNoAudiences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.cut(true)
		fake := &fakeHost{marker: ahp.NewClientTerminals(0).Meta(), target: ahp.TargetClient}
		w.serve = fake.serve
		h, child := w.spawn(term.Spec{Audience: []string{"bob"}})
		child.Print("secret")
		if _, err := w.link.CheckAudience(t.Context(), []string{"bob"}); !errors.Is(err, uplink.ErrOffline) {
			t.Errorf("offline: %v", err)
		}
		w.cut(false)
		w.link.Nudge()
		w.online()
		st := w.link.Status()
		if st.LentMeans != vocab.LentToEverybody || st.Owner != "" || len(fake.created) > 0 || st.Terminals[0].Problem == "" {
			t.Errorf("%+v; %d were created", st, len(fake.created))
		}
		if _, err := w.link.CheckAudience(t.Context(), nil); !errors.Is(err, uplink.ErrOpen) {
			t.Errorf("a host without audiences: %v", err)
		}
		// Once it is for everybody, it is announced.
		must.Do(t, h.ChangeAudience("lab", loans.AudienceChange{Drop: []string{"bob"}}))
		synctest.Wait()
		if len(fake.created) != 1 {
			t.Errorf("it is at the host %d times", len(fake.created))
		}
		// For guests alone it needs a host that takes shares.
		yes := true
		other, _ := w.spawn(term.Spec{})
		must.Do(t, other.ChangeAudience("lab", loans.AudienceChange{GuestsOnly: &yes}))
		synctest.Wait()
		w.cut(false)
		w.link.Nudge()
		w.online()
		for _, l := range w.link.Status().Terminals {
			if l.ID == string(other.ID()) && l.There {
				t.Errorf("%+v is shown", l)
			}
		}
	})
}

// A host's report of watchers is its claim: bounded, without control characters, never
// from the future, and dropped with the connection.
func TestWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := map[string]int{}
		w := newWorld(t, host.Options{}, func(o *uplink.Options) {
			o.Watched = func(_ term.ID, who []vocab.Watcher) {
				heard["calls"]++
				for _, one := range who {
					heard[one.Who]++
				}
			}
		})
		w.cut(true)
		f := newAudienceHost(w, "nobody")
		w.cut(false)
		w.link.Nudge()
		w.online()
		w.spawn(term.Spec{})
		if st := w.link.Status(); st.LentMeans != vocab.LentToAudience || st.Owner != "ann[2J" || !st.Shares {
			t.Errorf("%+v", st)
		}
		if refused, err := w.link.CheckAudience(t.Context(), []string{"bob", "nobody"}); err != nil || !cmp.Equal(refused, []string{"nobody"}) {
			t.Errorf("refused %q, %v", refused, err)
		}
		uri, since := f.created[0], time.Now().Add(-time.Minute)
		say := func(p ahp.WatchersParams) {
			f.peer.Notify(t.Context(), ahp.MethodWatchers, p)
			synctest.Wait()
		}
		say(ahp.WatchersParams{Channel: uri, May: []string{"ann", "b\x1b]0;x\ab"}, Refused: []string{"cy"}, More: 3, Watching: []ahp.Watcher{
			{Who: "ann\r\n", Kind: "person", Since: since}, {Who: "late", Kind: "agent", Since: time.Now().Add(time.Hour)}}})
		got := w.link.Status().Terminals[0].Watchers
		want := &vocab.Watchers{May: []string{"ann", "b]0;xb"}, Refused: []string{"cy"}, More: 3,
			Watching: []vocab.Watcher{{Who: "ann", Kind: "person", Since: since}, {Who: "late", Kind: "agent", Since: time.Now()}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		say(ahp.WatchersParams{Channel: "ahp-terminal:/another", Watching: []ahp.Watcher{{Who: "x"}}})
		say(ahp.WatchersParams{Channel: uri, More: -1})
		if w.link.Status().Terminals[0].Watchers.More != 3 {
			t.Error("nonsense was believed")
		}
		w.cut(true)
		if got := w.link.Status().Terminals[0].Watchers; got != nil {
			t.Errorf("without a connection %+v", got)
		}
		if heard["ann"] != 1 || heard["x"] != 0 || heard["calls"] != 2 {
			t.Errorf("heard %v", heard)
		}
	})
}
