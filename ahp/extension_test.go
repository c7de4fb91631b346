package ahp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/internal/testkit/must"
)

func TestFindClientTerminals(t *testing.T) {
	full := ahp.NewClientTerminals(30_000)
	bare := ahp.ClientTerminals{MaxDataBytes: ahp.DefaultMaxDataBytes}
	const marker = `{"version":1,"graceMs":30000,"resume":true,"commandActions":true,"maxDataBytes":65536}`
	meta := func(m string) string { return `{"_meta":{"tether/clientTerminals":` + m + `}}` }
	tests := map[string]struct {
		result string
		want   ahp.ClientTerminals
		ok     bool
	}{
		"none":                     {`{}`, ahp.ClientTerminals{}, false},
		"others' metadata":         {`{"_meta":{"x/y":{"version":1}}}`, ahp.ClientTerminals{}, false},
		"in _meta":                 {meta(marker), full, true},
		"version alone":            {meta(`{"version":1}`), ahp.ClientTerminals{Version: 1, MaxDataBytes: 65536}, true},
		"unknown members":          {meta(`{"version":1,"future":[]}`), ahp.ClientTerminals{Version: 1, MaxDataBytes: 65536}, true},
		"newer version":            {meta(`{"version":2}`), ahp.ClientTerminals{}, false},
		"no version in _meta":      {meta(`{}`), bare, false},
		"not an object":            {meta(`true`), ahp.ClientTerminals{}, false},
		"null":                     {meta(`null`), ahp.ClientTerminals{}, false},
		"wrong types":              {meta(`{"version":"1"}`), ahp.ClientTerminals{}, false},
		"out of range, low":        {meta(`{"version":1,"graceMs":-5,"maxDataBytes":-1}`), ahp.ClientTerminals{Version: 1, MaxDataBytes: 1024}, true},
		"out of range, high":       {meta(`{"version":1,"graceMs":99999999999,"maxDataBytes":99999999999,"heartbeatMs":9223372036854775807}`), ahp.ClientTerminals{Version: 1, GraceMs: 3_600_000, MaxDataBytes: 1 << 20, HeartbeatMs: 3_600_000}, true},
		"typed, bare":              {`{"clientTerminals":{}}`, bare, true},
		"typed, full":              {`{"clientTerminals":` + marker + `}`, full, true},
		"typed before _meta":       {`{"clientTerminals":{},"_meta":{"tether/clientTerminals":` + marker + `}}`, bare, true},
		"typed false, then _meta":  {`{"clientTerminals":false,"_meta":{"tether/clientTerminals":` + marker + `}}`, full, true},
		"typed null without _meta": {`{"clientTerminals":null}`, ahp.ClientTerminals{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := ahp.FindClientTerminals(reads[ahp.InitializeResult](t, tt.result))
			if ok != tt.ok {
				t.Fatalf("found %v, want %v", ok, tt.ok)
			}
			if diff := cmp.Diff(tt.want, got); ok && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarkersMeetEachOther(t *testing.T) {
	got, ok := ahp.FindClientTerminals(ahp.InitializeResult{Meta: ahp.NewClientTerminals(5).Meta()})
	if diff := cmp.Diff(ahp.NewClientTerminals(5), got); !ok || diff != "" {
		t.Errorf("found %v (-want +got):\n%s", ok, diff)
	}
	if got := string(ahp.NewClientMeta()[ahp.MarkerKey]); got != `{"versions":[1]}` {
		t.Errorf("the client's marker is %s", got)
	}
	for raw, want := range map[string]bool{`{"versions":[1]}`: true, `{"versions":[3,1,2]}`: true, `{"versions":[2]}`: false,
		`{"versions":"1"}`: false, `[1]`: false, `null`: false} {
		if got := ahp.OffersExtension(ahp.Meta{ahp.MarkerKey: json.RawMessage(raw)}); got != want {
			t.Errorf("OffersExtension(%s) = %v, want %v", raw, got, want)
		}
	}
	if ahp.OffersExtension(nil) {
		t.Error("no _meta offers the extension")
	}
}

// Each side says which requests it knows, or they are not sent.
func TestMarkersOfRequests(t *testing.T) {
	for text, want := range map[string]ahp.ClientMarker{
		`{"versions":[1],"runs":true}`:    {Versions: []int64{1}, Runs: true},
		`{"versions":[1],"ports":true}`:   {Versions: []int64{1}, Ports: true},
		`{"versions":[1]}`:                {Versions: []int64{1}},
		`{"versions":[2],"runs":true}`:    {},
		`{"versions":[2],"ports":true}`:   {},
		`{"versions":[1],"ports":"true"}`: {},
		`null`:                            {},
	} {
		if got, ok := ahp.FindClientMarker(ahp.Meta{ahp.MarkerKey: []byte(text)}); !cmp.Equal(got, want) || ok != (want.Versions != nil) {
			t.Errorf("%s: %+v, %t, want %+v", text, got, ok, want)
		}
	}
	sent := ahp.ClientMarker{Runs: true, Ports: true}
	if got, ok := ahp.FindClientMarker(sent.Meta()); !ok || !got.Runs || !got.Ports {
		t.Errorf("the marker of a client comes as %+v, %t", got, ok)
	}
	if m, ok := ahp.FindClientTerminals(ahp.InitializeResult{Meta: ahp.Meta{ahp.MarkerKey: []byte(`{"version":1,"runs":true,"ports":true}`)}}); !ok || !m.Runs || !m.Ports {
		t.Errorf("a host's marker: %+v, %t", m, ok)
	}
}

// A terminal with any _meta from a host can be read, and the values read are valid.
func FuzzTerminalMeta(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"tether/formerTerminal":"ahp-terminal:/a","tether/missingBytes":7}`, `{"tether/formerTerminal":"\ud800:"}`,
		`{"tether/missingBytes":1e3}`, `{"tether/missingBytes":-1}`, `[1]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m, again ahp.TerminalMeta
		if !json.Valid(raw) {
			return
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if m.Missing < 0 || m.Former != "" && ahp.CheckURI(m.Former) != nil {
			t.Errorf("%s is read as %+v", raw, m)
		}
		out, err := json.Marshal(m)
		if err == nil {
			err = json.Unmarshal(out, &again)
		}
		if err != nil || !cmp.Equal(again, m) {
			t.Errorf("%s is read as %+v, written as %s and read as %+v, %v", raw, m, out, again, err)
		}
	})
}

func TestTerminalMeta(t *testing.T) {
	for _, c := range []struct {
		meta string
		want ahp.TerminalMeta
	}{
		{`{"tether/formerTerminal":"ahp-terminal:/a","tether/missingBytes":7}`, ahp.TerminalMeta{Former: "ahp-terminal:/a", Missing: 7}},
		{`{"tether/formerTerminal":"no URI","tether/missingBytes":-7}`, ahp.TerminalMeta{}},
		{`{"tether/formerTerminal":7,"tether/missingBytes":"7"}`, ahp.TerminalMeta{}},
		{`{"tether/adopted":"tmux"}`, ahp.TerminalMeta{Adopted: "tmux"}},
		{`{"tether/adopted":"kitty","tether/repeatedPicture":true}`, ahp.TerminalMeta{Adopted: "kitty", Picture: true}},
		{`{"tether/adopted":"<b>","tether/repeatedPicture":true}`, ahp.TerminalMeta{}},
		{`{"tether/adopted":7}`, ahp.TerminalMeta{}},
		{`{"tether/repeatedPicture":true}`, ahp.TerminalMeta{}},
		{`{"tether/ports":[{"port":3000,"write":true,"untilMs":7},{"port":5173}]}`, ahp.TerminalMeta{Ports: []ahp.LentPort{{Port: 3000, Write: true, UntilMs: 7}, {Port: 5173}}}},
		{`{"tether/ports":[{"port":1023}]}`, ahp.TerminalMeta{}},
		{`{"tether/ports":[{"port":65536}]}`, ahp.TerminalMeta{}},
		{`{"tether/ports":[{"port":3000},{"port":3000}]}`, ahp.TerminalMeta{}},
		{`{"tether/ports":[]}`, ahp.TerminalMeta{}},
		{`{"tether/ports":[` + strings.Repeat(`{"port":3000},`, ahp.MaxLentPorts) + `{"port":3001}]}`, ahp.TerminalMeta{}},
		{`{"theirs":{}}`, ahp.TerminalMeta{}},
		{`"a string"`, ahp.TerminalMeta{}},
		{`null`, ahp.TerminalMeta{}},
	} {
		var s ahp.TerminalState
		var i ahp.TerminalInfo
		raw := `{"title":"x","content":[],"claim":{"kind":"client","clientId":"c"},"_meta":` + c.meta + `}`
		if err := errors.Join(json.Unmarshal([]byte(raw), &s), json.Unmarshal([]byte(raw), &i)); err != nil || !cmp.Equal(s.Meta, c.want) || !cmp.Equal(i.Meta, c.want) {
			t.Errorf("%s: %+v and %+v, %v; want %+v", c.meta, s.Meta, i.Meta, err, c.want)
		}
		again := ahp.TerminalState{}
		out, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(out, &again)
		}
		if err != nil || !cmp.Equal(again.Meta, c.want) || cmp.Equal(c.want, ahp.TerminalMeta{}) && strings.Contains(string(out), "_meta") {
			t.Errorf("%s: encoded as %s, %v", c.meta, out, err)
		}
	}
	meta := ahp.NewTerminalMeta("ahp-terminal:/b", true)
	if got := ahp.FindFormer(meta); got != "ahp-terminal:/b" || !ahp.FindHolds(meta) {
		t.Errorf("former = %q, holds = %v", got, ahp.FindHolds(meta))
	}
	if m := ahp.NewTerminalMeta("", false); m != nil || ahp.FindHolds(m) || ahp.FindHolds(ahp.Meta{ahp.HoldsKey: []byte(`"yes"`)}) {
		t.Errorf("of a terminal with nothing to say, _meta is %v", m)
	}
}

// An entry of a catalogue says that the terminal waits for input. An unknown word means
// that it does not.
func TestAwaits(t *testing.T) {
	for raw, want := range map[string]ahp.Awaiting{`{"tether/awaits":"awaiting_input"}`: ahp.AwaitsInput, `{"tether/awaits":"awaiting_secret"}`: ahp.AwaitsSecret,
		`{"tether/awaits":"quiet"}`: ahp.AwaitsNothing, `{"tether/awaits":7}`: ahp.AwaitsNothing} {
		var m ahp.TerminalMeta
		if err := json.Unmarshal([]byte(raw), &m); err != nil || m.Awaits != want {
			t.Errorf("%s: %v, %v", raw, m.Awaits, err)
		}
		again, err := json.Marshal(m)
		if err != nil || want != ahp.AwaitsNothing && string(again) != raw || want == ahp.AwaitsNothing && string(again) != "{}" {
			t.Errorf("%s is written as %s, %v", raw, again, err)
		}
	}
}

// An entry of a catalogue says whether the terminal is ready. An unknown word means that
// it has no readiness.
func TestReadiness(t *testing.T) {
	for raw, want := range map[string]string{`{"tether/ready":"starting"}`: ahp.ReadyStarting, `{"tether/ready":"ready"}`: ahp.ReadyYes, `{"tether/ready":"failed"}`: ahp.ReadyFailed,
		`{"tether/ready":"stopped"}`: ahp.ReadyStopped, `{"tether/ready":"dancing"}`: "", `{"tether/ready":[]}`: ""} {
		var m ahp.TerminalMeta
		if err := json.Unmarshal([]byte(raw), &m); err != nil || m.Ready.String() != want {
			t.Errorf("%s: %v, %v", raw, m.Ready, err)
		}
		if again, err := json.Marshal(m); err != nil || want != "" && string(again) != raw || want == "" && string(again) != "{}" {
			t.Errorf("%s is written as %s, %v", raw, again, err)
		}
	}
}

func TestState(t *testing.T) {
	want := ahp.NewState("ahp-terminal:/a", ahp.InputQuiet, time.UnixMilli(5))
	want.SetReady(ahp.ReadyFailed, time.UnixMilli(7), "not \"ready\"\u2028")
	var got struct{ Params json.RawMessage }
	must.Do(t, json.Unmarshal(ahp.AppendState(nil, want), &got))
	var p ahp.StateParams
	if err := ahp.DecodeParams(got.Params, &p); err != nil || p != want || !p.Since().Equal(time.UnixMilli(5)) || !p.BecameReady().Equal(time.UnixMilli(7)) {
		t.Errorf("%s is %+v, %v", got.Params, p, err)
	}
	for _, raw := range []string{`{"channel":"a:b","input":"quiet","readySince":-1}`, `{"channel":"","input":"quiet"}`, `{"channel":"a:b","readyWhy":"` + strings.Repeat("x", 300) + `"}`} {
		if err := ahp.DecodeParams([]byte(raw), &p); err == nil {
			t.Errorf("%s was taken", raw)
		}
	}
}
