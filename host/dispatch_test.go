package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// everyAction is one valid action of each kind, and two of none.
var everyAction = []ahp.Action{
	ahp.TerminalData{Data: "x"},
	ahp.TerminalOutput{Data: "x"},
	ahp.TerminalInput{Data: "secret"},
	ahp.TerminalResized{Cols: 100, Rows: 50},
	ahp.TerminalClaimed{Claim: ahp.ClientClaim("laptop")},
	ahp.TerminalTitleChanged{Title: "new"},
	ahp.TerminalCwdChanged{Cwd: "/new"},
	ahp.TerminalCleared{},
	ahp.TerminalCommandDetectionAvailable{},
	ahp.TerminalCommandExecuted{CommandID: "c1", CommandLine: "make", Timestamp: 1},
	ahp.TerminalCommandFinished{CommandID: "c1"},
	ahp.UnknownAction{Kind: "terminal/x", Raw: []byte(`{"type":"terminal/x","a":1}`)},
	ahp.UnknownAction{Kind: "session/x", Raw: []byte(`{"type":"session/x"}`)},
	ahp.TerminalExited{},
}

func TestDispatchRights(t *testing.T) {
	owner := map[string]bool{ahp.ActionTerminalResized: true, ahp.ActionTerminalTitleChanged: true, ahp.ActionTerminalCwdChanged: true,
		ahp.ActionTerminalCleared: true, ahp.ActionTerminalCommandDetectionAvailable: true, ahp.ActionTerminalCommandExecuted: true,
		ahp.ActionTerminalCommandFinished: true, ahp.ActionTerminalExited: true, ahp.ActionTerminalOutput: true}
	exited := map[string]bool{ahp.ActionTerminalResized: true, ahp.ActionTerminalTitleChanged: true,
		ahp.ActionTerminalCwdChanged: true, ahp.ActionTerminalCleared: true}
	for _, test := range []struct {
		role string // the dispatching client: the owner, the owner after the exit, a subscriber, another one
		may  map[string]bool
	}{{"owner", owner}, {"owner after exit", exited}, {"observer", nil}, {"stranger", nil}} {
		for _, a := range everyAction {
			t.Run(test.role+" "+a.Type(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { dispatchAs(t, test.role, a, test.may[a.Type()]) })
			})
		}
	}
}

func dispatchAs(t *testing.T, role string, a ahp.Action, allowed bool) {
	h := testHost(t, host.Options{})
	owner := connect(t, h, "laptop", viewOptions{})
	witness := connect(t, h, "witness", viewOptions{})
	owner.create(uri)
	owner.output(uri, "before", -1)
	owner.ping()
	if role == "owner after exit" {
		owner.dispatch(uri, ahp.TerminalExited{})
		owner.ping()
	}
	must.Do(t, witness.subscribe(uri))
	who := owner
	if !strings.HasPrefix(role, "owner") {
		who = connect(t, h, "other", viewOptions{})
	}
	if role == "observer" {
		must.Do(t, who.subscribe(uri))
	}
	before := witness.state(uri)
	seq := who.dispatch(uri, a)
	who.ping()
	synctest.Wait()
	if allowed {
		if before, after := fmt.Sprint(before), fmt.Sprint(witness.state(uri)); before == after && a.Type() != ahp.ActionTerminalCommandFinished {
			t.Errorf("the state did not change: %s", after)
		}
		return
	}
	for _, v := range []*viewer{who, witness} {
		found := false
		v.mu.Lock()
		for _, e := range v.envelopes {
			if e.Origin != nil && e.Origin.ClientID == who.id && e.Origin.ClientSeq == seq {
				found = e.Rejected() && *e.RejectionReason != "" && e.Channel == uri && !strings.Contains(string(e.Action), "secret")
			}
		}
		v.mu.Unlock()
		if !found {
			all, _ := v.received()
			t.Errorf("%s got no refusal that carries a reason and no text: %+v", v.id, all)
		}
	}
	if before, after := fmt.Sprint(before), fmt.Sprint(witness.state(uri)); before != after {
		t.Errorf("the state changed from %s to %s", before, after)
	}
}

// An action without its required text is refused with a reason, from any client.
func TestTextThatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		other := connect(t, h, "other", viewOptions{})
		for _, action := range []string{
			`{"type":"terminal/output"}`, `{"type":"terminal/output","data":3}`, `{"type":"terminal/output","data":null}`,
			`{"type":"terminal/output","data":"x","_meta":{"tether/offset":-1}}`, `{"type":"terminal/input"}`,
		} {
			for _, who := range []*viewer{owner, other} {
				e := who.answer(who.dispatchRaw(uri, []byte(action)))
				if !e.Rejected() || *e.RejectionReason == "" || strings.Contains(string(e.Action), `"x"`) {
					t.Errorf("%s of %s: answered %+v", action, who.id, e)
				}
			}
		}
	})
}

func TestOutputIsNotEchoedToItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 2000})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		must.Do(t, owner.subscribe(uri))
		// More than the log holds, so that a cursor left behind would fall off it.
		for i := range 100 {
			owner.output(uri, strings.Repeat("x", 100), int64(100*i))
		}
		seq := owner.dispatch(uri, ahp.TerminalTitleChanged{Title: "t"})
		if e := owner.answer(seq); e.Rejected() {
			t.Errorf("refused: %s", *e.RejectionReason)
		}
		seen, _ := owner.received()
		for _, e := range seen {
			if strings.Contains(string(e.Action), "xxx") || strings.Contains(string(e.Action), ahp.ActionTerminalCleared) {
				t.Errorf("the owner was sent %.80s", e.Action)
			}
		}
		owner.await("the acknowledgement", func() bool { return owner.acks[uri] == 10_000 })
	})
}

func TestOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		watcher := connect(t, h, "watcher", viewOptions{})
		owner.create(uri)
		must.Do(t, watcher.subscribe(uri))
		owner.output(uri, "0123", 0)
		owner.output(uri, "0123", 0)                                                                         // a duplicate
		owner.output(uri, "23456", 2)                                                                        // an overlap
		owner.output(uri, "grüße", 7)                                                                        // follows; 7 bytes
		owner.output(uri, "üe…", 10)                                                                         // overlaps to 14, inside the last character, as nobody's should
		owner.output(uri, "later", 1014)                                                                     // 998 bytes are missing after 16
		owner.output(uri, "no offset", -1)                                                                   // follows
		owner.output(uri, "", 1028)                                                                          // nothing
		owner.output(uri, "liar", 1<<60)                                                                     // out of range
		owner.dispatchRaw(uri, []byte(`{"type":"terminal/output","data":"x","_meta":{"tether/offset":-4}}`)) // unreadable
		owner.ping()
		want := "0123456grüße\r\n[tether: 998 bytes of output are missing here]\r\nlaterno offset"
		watcher.awaitText(uri, "no offset")
		if got := watcher.textOf(uri); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		owner.await("the acknowledgement", func() bool { return owner.acks[uri] == 1028 })
		var r struct {
			Snapshot struct {
				State struct {
					Meta ahp.TerminalMeta `json:"_meta"`
				} `json:"state"`
			} `json:"snapshot"`
		}
		if err := watcher.call(ahp.MethodSubscribe, ahp.SubscribeParams{Channel: uri}, &r); err != nil || r.Snapshot.State.Meta.Missing != 998 {
			t.Errorf("snapshot says %v missing, %v; want 998", r.Snapshot.State.Meta, err)
		}
	})
}

// Whoever watches a terminal gets of a stranger's refused action its type, if it is one
// of AHP's, and a fixed reason, live and in a replay. The sender gets the true reason.
// The same holds for the one action on the root that changes nothing.
func TestRefusalsTellOthersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		watching := []string{ahp.RootURI, uri}
		stranger, witness := connect(t, h, "stranger", viewOptions{subs: watching}), connect(t, h, "witness", viewOptions{subs: watching})
		absent := connect(t, h, "absent", viewOptions{subs: watching})
		absent.close()
		synctest.Wait()
		all := 0
		for _, c := range []struct{ to, action, want, why string }{
			{uri, `{"type":"terminal/titleChanged","title":"evil"}`, "terminal/titleChanged", "observation-only"},
			{uri, `{"type":"terminal/cwdChanged","cwd":"evil"}`, "terminal/cwdChanged", "observation-only"},
			{uri, `{"type":"terminal/input","data":"evil"}`, "terminal/input", "observation-only"},
			{uri, `{"type":"terminal/output","data":"evil"}`, "terminal/output", "observation-only"},
			{uri, `{"type":"terminal/resized","cols":80,"rows":24,"evil":1}`, "terminal/resized", "observation-only"},
			{uri, `{"type":"terminal/claimed","claim":{"kind":"evil"}}`, "terminal/claimed", "observation-only"},
			{uri, `{"type":"terminal/evil"}`, "unknown", "observation-only"},
			{uri, `{"type":"evil","evil":"evil"}`, "unknown", "observation-only"},
			{uri, `{"type":"root/terminalsChanged","terminals":[{"title":"evil"}]}`, "root/terminalsChanged", "observation-only"},
			{ahp.RootURI, `{"type":"terminal/evil"}`, "unknown", `"terminal/evil" on the root channel`},
			{ahp.RootURI, `{"type":"root/terminalsChanged","terminals":[{"title":"evil"}]}`, "root/terminalsChanged", "on the root channel"},
			{ahp.RootURI, `{"type":"root/configChanged","config":{"evil":"evil"}}`, "root/configChanged", ""},
		} {
			seq := stranger.dispatchRaw(c.to, []byte(c.action))
			own := stranger.answer(seq)
			if own.Rejected() != (c.why != "") || own.Rejected() && !strings.Contains(*own.RejectionReason, c.why) {
				t.Errorf("%s: the sender is told %+v", c.action, own)
			}
			var got ahp.Envelope
			witness.await("the same for others", func() bool {
				for _, e := range witness.envelopes {
					if e.ServerSeq == own.ServerSeq {
						got = e
						return true
					}
				}
				return false
			})
			var action struct{ Type string }
			text, err := json.Marshal(got)
			if err != nil || json.Unmarshal(got.Action, &action) != nil {
				t.Fatal(err, string(got.Action))
			}
			if got.Rejected() != own.Rejected() || action.Type != c.want || strings.Contains(string(text), "evil") || got.Rejected() && *got.RejectionReason == "" {
				t.Errorf("%s: others get %s", c.action, text)
			}
			all++
		}
		_, r, err := reconnect(t, h, absent, watching...)
		text, _ := json.Marshal(r.Actions) // as it was decoded
		if err != nil || len(r.Actions) != all || strings.Contains(string(text), "evil") {
			t.Errorf("a replay of %d: %v\n%s", all, err, text)
		}
	})
}

func TestRefusalsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		other := connect(t, h, "other", viewOptions{})
		owner.create(uri)
		must.Do(t, owner.subscribe(uri))
		for range 1000 {
			other.dispatch(uri, ahp.TerminalInput{Data: strings.Repeat("x", 1000)})
		}
		other.ping()
		synctest.Wait()
		owner.mu.Lock()
		n := len(owner.envelopes)
		owner.mu.Unlock()
		if n == 0 || n > 100 {
			t.Errorf("1000 refused actions reached the owner as %d envelopes, want 1 to 100", n)
		}
	})
}

func TestRootConfigIsEchoed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		v := connect(t, h, "vscode", viewOptions{subs: []string{ahp.RootURI}})
		seq := v.dispatch(ahp.RootURI, ahp.RootConfigChanged{Config: map[string]jsonRaw{"telemetry": jsonRaw(`"off"`)}})
		if e := v.answer(seq); e.Rejected() {
			t.Errorf("root/configChanged was refused: %s", *e.RejectionReason)
		}
		seq = v.dispatch(ahp.RootURI, ahp.RootTerminalsChanged{})
		if e := v.answer(seq); !e.Rejected() {
			t.Error("a client's root/terminalsChanged was accepted")
		}
	})
}
