package host_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

func TestCreateTerminalIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{MaxTerminals: 3})
		v := connect(t, h, "laptop", viewOptions{subs: []string{ahp.RootURI}})
		other := connect(t, h, "other", viewOptions{})
		other.create("ahp-terminal:/theirs")
		const mine = `"claim":{"kind":"client","clientId":"laptop"}`
		for _, test := range []struct {
			name, members string
			want          int64
			text          string // named in the message
		}{
			{"session claim", `"channel":"ahp-terminal:/a","executionTarget":"client","claim":{"kind":"session","session":"s:/1","chat":"c:/1"}`, -32602, "claim"},
			{"no claim", `"channel":"ahp-terminal:/a","executionTarget":"client"`, -32602, "claim"},
			{"somebody else's claim", `"channel":"ahp-terminal:/a","executionTarget":"client","claim":{"kind":"client","clientId":"other"}`, -32602, "claim"},
			{"claim of a robot", `"channel":"ahp-terminal:/a","executionTarget":"client","claim":{"kind":"robot","clientId":"laptop"}`, -32602, "claim"},
			{"claim with a number", `"channel":"ahp-terminal:/a","executionTarget":"client","claim":{"kind":"client","clientId":7}`, -32602, "clientId"},
			{"unknown target", `"channel":"ahp-terminal:/a","executionTarget":"banana",` + mine, -32602, "executionTarget"},
			{"target of a wrong type", `"channel":"ahp-terminal:/a","executionTarget":1,` + mine, -32602, "executionTarget"},
			{"no columns", `"channel":"ahp-terminal:/a","executionTarget":"client","cols":0,"rows":24,` + mine, -32602, "cols"},
			{"negative rows", `"channel":"ahp-terminal:/a","executionTarget":"client","cols":80,"rows":-1,` + mine, -32602, "rows"},
			{"huge", `"channel":"ahp-terminal:/a","executionTarget":"client","cols":70000,"rows":70000,` + mine, -32602, "cols"},
			{"no channel", `"executionTarget":"client",` + mine, -32602, "channel"},
			{"channel without a scheme", `"channel":"a","executionTarget":"client",` + mine, -32602, "channel"},
			{"channel with a control character", `"channel":"ahp-terminal:/a\u0007","executionTarget":"client",` + mine, -32602, "channel"},
			{"the root", `"channel":"ahp-root://","executionTarget":"client",` + mine, -32602, "channel"},
			{"long name", `"channel":"ahp-terminal:/a","name":"` + strings.Repeat("n", 5000) + `","executionTarget":"client",` + mine, -32602, "name"},
			{"exists", `"channel":"ahp-terminal:/theirs","executionTarget":"client",` + mine, ahp.CodeAlreadyExists, "URI"},
			{"server-executed at a host without a runner", `"channel":"ahp-terminal:/a",` + mine, ahp.CodePermissionDenied, "executionTarget"},
		} {
			err := v.call(ahp.MethodCreateTerminal, jsonRaw("{"+test.members+"}"), nil)
			if code(err) != test.want || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: %v, want code %d and %q", test.name, err, test.want, test.text)
			}
		}
		for i := range 4 {
			err := v.call(ahp.MethodCreateTerminal, clientTerminal(fmt.Sprint("ahp-terminal:/", i), "laptop"), nil)
			if (err == nil) != (i < 3) {
				t.Errorf("terminal %d of at most 3: %v", i, err)
			}
		}
		v.await("four terminals", func() bool { return len(v.root.Terminals) == 4 })
		// Without resume, announcing again is creating twice.
		err := v.call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/0", "laptop"), nil)
		if code(err) != ahp.CodeAlreadyExists {
			t.Errorf("creating twice: %v, want code %d", err, ahp.CodeAlreadyExists)
		}
		v.dispatch("ahp-terminal:/0", ahp.TerminalTitleChanged{Title: "a\x1b[2Jb\u202ec"})
		v.await("a title without control characters", func() bool { return v.root.Terminals[1].Title == "a[2Jbc" })
	})
}

// A size with only one number is kept, when a terminal is made and when it is announced
// again.
func TestHalfASize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		v := connect(t, h, "laptop", viewOptions{resume: true})
		watcher := connect(t, h, "watcher", viewOptions{})
		announce := func(uri, size string) (cols, rows int64) {
			t.Helper()
			members := `{"channel":"` + uri + `","executionTarget":"client","claim":{"kind":"client","clientId":"laptop"},` + size + `}`
			must.Do(t, v.call(ahp.MethodCreateTerminal, jsonRaw(members), nil))
			must.Do(t, watcher.subscribe(uri))
			s := watcher.state(uri)
			return s.Cols, s.Rows
		}
		for _, step := range []struct {
			uri, size  string
			cols, rows int64
		}{
			{"ahp-terminal:/a", `"cols":120`, 120, 0},
			{"ahp-terminal:/a", `"cols":130`, 130, 0},
			{"ahp-terminal:/a", `"rows":40`, 130, 40},
			{"ahp-terminal:/a", `"cols":140`, 140, 40},
			{"ahp-terminal:/b", `"rows":50`, 0, 50},
		} {
			if cols, rows := announce(step.uri, step.size); cols != step.cols || rows != step.rows {
				t.Errorf("%s with %s: %d x %d, want %d x %d", step.uri, step.size, cols, rows, step.cols, step.rows)
			}
		}
	})
}

func TestSubscriptionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{MaxSubscriptions: 2})
		v := connect(t, h, "laptop", viewOptions{subs: []string{ahp.RootURI}})
		for i := range 3 {
			name := fmt.Sprint("ahp-terminal:/", i)
			v.create(name)
			if err := v.subscribe(name); (err == nil) != (i < 1) {
				t.Errorf("subscription %d of at most 2: %v", i+2, err)
			}
		}
		if err := v.subscribe("ahp-terminal:/0"); err != nil {
			t.Errorf("subscribing again: %v", err)
		}
	})
}

func TestVersionsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{versions: []string{"0.7.0"}})
		owner.create(uri)
		owner.create("ahp-terminal:/runs")
		two := int64(2)
		owner.output(uri, "x", -1)
		var viewers []*viewer
		for _, version := range []string{"1.0.0", "0.9.0", "0.8.0", "0.7.0", "1.2.3"} {
			v := connect(t, h, "v"+version, viewOptions{versions: []string{"3.0.0", version}, subs: []string{ahp.RootURI, uri}})
			if v.result.ProtocolVersion != version {
				t.Errorf("negotiated %s, want %s", v.result.ProtocolVersion, version)
			}
			viewers = append(viewers, v)
		}
		owner.dispatch(uri, ahp.TerminalExited{ExitCode: &two})
		for _, v := range viewers {
			v.await("the exit", func() bool { return v.states[uri].Lifecycle.Exited() && v.root.Terminals[0].Lifecycle.Exited() })
			var raw struct {
				Snapshot struct {
					State map[string]jsonRaw `json:"state"`
				} `json:"snapshot"`
			}
			must.Do(t, v.call(ahp.MethodSubscribe, ahp.SubscribeParams{Channel: uri}, &raw))
			lifecycle, exitCode := string(raw.Snapshot.State["lifecycle"]), string(raw.Snapshot.State["exitCode"])
			list := string(v.lastOn(ahp.RootURI))
			if v.result.ProtocolVersion < "0.9" {
				if lifecycle != "" || exitCode != "2" || strings.Contains(list, "lifecycle") || !strings.Contains(list, `"exitCode":2`) {
					t.Errorf("%s: lifecycle %s, exitCode %s, catalogue %s", v.id, lifecycle, exitCode, list)
				}
			} else if lifecycle != `{"status":"exited","exitCode":2}` || exitCode != "" || !strings.Contains(list, `"lifecycle":{"status":"running"}`) {
				t.Errorf("%s: lifecycle %s, exitCode %s, catalogue %s", v.id, lifecycle, exitCode, list)
			}
		}
	})
}

// An exit without a code is -1 for clients up to 0.8, live and in a replay: without a
// code a terminal runs, to them.
func TestExitWithoutACode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		var live, away []*viewer
		for _, version := range []string{"1.0.0", "0.9.0", "0.8.0", "0.7.0"} {
			o := viewOptions{versions: []string{version}, subs: []string{uri}}
			live = append(live, connect(t, h, "live"+version, o))
			v := connect(t, h, "away"+version, o)
			v.close()
			away = append(away, v)
		}
		owner.dispatch(uri, ahp.TerminalExited{})
		for i, v := range live {
			v.await("the exit", func() bool { return v.states[uri].Lifecycle.Exited() })
			back, r, err := reconnect(t, h, away[i], uri)
			if err != nil || len(r.Actions) != 1 {
				t.Fatalf("%s: replayed %+v, %v", v.id, r.Actions, err)
			}
			want := `{"type":"terminal/exited","_meta"`
			if i > 1 {
				want = `{"type":"terminal/exited","exitCode":-1,`
			}
			if got := string(v.lastOn(uri)); !strings.HasPrefix(got, want) {
				t.Errorf("%s is told %s, want %s", v.id, got, want)
			}
			if got := string(r.Actions[0].Action); !strings.HasPrefix(got, want) {
				t.Errorf("%s is replayed %s, want %s", back.id, got, want)
			}
		}
	})
}

// lastOn is the newest action that came on a channel.
func (v *viewer) lastOn(uri string) (action jsonRaw) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.envelopes {
		if e.Channel == uri {
			action = e.Action
		}
	}
	return action
}

func TestMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Grace: 7e9})
		v := connect(t, h, "laptop", viewOptions{resume: true})
		got, ok := ahp.FindClientTerminals(v.result)
		want := ahp.ClientTerminals{Version: 1, GraceMs: 7000, Resume: true, CommandActions: true, MaxDataBytes: 65536, Screens: true, States: true, MayLend: new(true), Shares: true, Runs: true, Ports: true}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("the marker is there: %t; -want +got:\n%s", ok, diff)
		}
		if v.result.ServerInfo == nil || v.result.ServerInfo.Name == "" {
			t.Error("no serverInfo")
		}
	})
}
