package ahp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

const channel = "ahp-terminal:/6d1e0c1e-9c0f-4a53-8f4e-0d1f5a7b2c3d"

// message is a JSON-RPC notification whose params are not decoded.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

func params(t testing.TB, method string, msg []byte) json.RawMessage {
	t.Helper()
	var m message
	if err := json.Unmarshal(msg, &m); err != nil {
		t.Fatalf("%v in %q", err, msg)
	}
	if m.JSONRPC != "2.0" || m.Method != method {
		t.Fatalf("jsonrpc %q, method %q, want 2.0 and %q", m.JSONRPC, m.Method, method)
	}
	return m.Params
}

func TestAppendOutput(t *testing.T) {
	tests := map[string]struct {
		data   string
		offset int64
		want   string
	}{
		"plain":        {"ls\r\n", -1, `{"type":"terminal/output","data":"ls\r\n"}`},
		"first byte":   {"$ ", 0, `{"type":"terminal/output","data":"$ ","_meta":{"tether/offset":0}}`},
		"far":          {"", 1 << 62, `{"type":"terminal/output","data":"","_meta":{"tether/offset":4611686018427387904}}`},
		"controls":     {"\x1b[0m\x00\x7f", -1, `{"type":"terminal/output","data":"\u001b[0m\u0000` + "\x7f" + `"}`},
		"markup":       {"<&>", -1, `{"type":"terminal/output","data":"<&>"}`},
		"invalid":      {"a\xff\xfeb", -1, `{"type":"terminal/output","data":"a\ufffd\ufffdb"}`},
		"cut":          {"\xe7\xab", -1, `{"type":"terminal/output","data":"\ufffd\ufffd"}`},
		"beyond BMP":   {"🖥", -1, `{"type":"terminal/output","data":"🖥"}`},
		"line and par": {"\u2028\u2029", -1, `{"type":"terminal/output","data":"\u2028\u2029"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ahp.AppendOutput([]byte("before"), channel, 7, []byte(tt.data), tt.offset)
			want := `before{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + channel +
				`","clientSeq":7,"action":` + tt.want + `}}`
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppendData(t *testing.T) {
	got := ahp.AppendData(nil, channel, 1<<40, &ahp.Origin{ClientID: `a"b`, ClientSeq: 3}, []byte(`"x\ny"`))
	want := `{"jsonrpc":"2.0","method":"action","params":{"channel":"` + channel + `","serverSeq":1099511627776,` +
		`"origin":{"clientId":"a\"b","clientSeq":3},"action":{"type":"terminal/data","data":"x\ny"}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	without := ahp.AppendData(nil, channel, 1, nil, []byte(`""`))
	if bytes.Contains(without, []byte("origin")) {
		t.Errorf("a nil origin was written: %s", without)
	}
}

func TestAppendEnvelope(t *testing.T) {
	cleared := ahp.AppendAction(nil, ahp.TerminalCleared{})
	for _, c := range []struct {
		name   string
		origin *ahp.Origin
		reason string
		want   string // between serverSeq and action
	}{
		{"of the host", nil, "", ""},
		{"a client's", &ahp.Origin{ClientID: `a"b`, ClientSeq: 3}, "", `,"origin":{"clientId":"a\"b","clientSeq":3}`},
		{"refused", &ahp.Origin{ClientID: "a"}, `not "yours"`, `,"origin":{"clientId":"a","clientSeq":0},"rejectionReason":"not \"yours\""`},
	} {
		got := ahp.AppendEnvelope([]byte("before"), channel, 9, c.origin, c.reason, cleared)
		params := `{"channel":"` + channel + `","serverSeq":9` + c.want + `,"action":{"type":"terminal/cleared"}}`
		check.Equal(t, fmt.Sprintf("%s:", c.name), `before{"jsonrpc":"2.0","method":"action","params":`+params+`}`, string(got))
		if inner := string(ahp.EnvelopeParams(got[len("before"):])); inner != params {
			t.Errorf("%s: its params are %s, want %s", c.name, inner, params)
		}
	}
}

func TestDecodeDispatchErrors(t *testing.T) {
	tests := map[string]struct{ params, want string }{
		"not JSON":          {`{"channel"`, "dispatchAction: jsonspan: unexpected end at byte 10"},
		"not an object":     {`[]`, "dispatchAction: jsonspan: not a JSON object"},
		"nothing":           {`{}`, "dispatchAction: channel is missing"},
		"channel number":    {`{"channel":1}`, "dispatchAction: channel is not a string"},
		"channel empty":     {`{"channel":""}`, "dispatchAction: channel is empty"},
		"channel null":      {`{"channel":null}`, "dispatchAction: channel is missing"},
		"clientSeq string":  {`{"channel":"a:b","clientSeq":"1"}`, "dispatchAction: clientSeq is not a whole number"},
		"clientSeq half":    {`{"channel":"a:b","clientSeq":0.5}`, "dispatchAction: clientSeq is not a whole number"},
		"no action":         {`{"channel":"a:b"}`, "action is missing"},
		"action string":     {`{"channel":"a:b","action":"x"}`, "action is not an object"},
		"no type":           {`{"channel":"a:b","action":{}}`, "action: type is missing"},
		"type number":       {`{"channel":"a:b","action":{"type":7}}`, "action: type is not a string"},
		"no data":           {`{"channel":"a:b","action":{"type":"terminal/output"}}`, "terminal/output: data is missing or not a string"},
		"data number":       {`{"channel":"a:b","action":{"type":"terminal/input","data":3}}`, "terminal/input: data is missing or not a string"},
		"offset string":     {`{"channel":"a:b","action":{"type":"terminal/output","data":"","_meta":{"tether/offset":"1"}}}`, "terminal/output: tether/offset is not a whole number"},
		"offset below zero": {`{"channel":"a:b","action":{"type":"terminal/output","data":"","_meta":{"tether/offset":-1}}}`, "terminal/output: tether/offset is -1, want 0 or more"},
		"meta not object":   {`{"channel":"a:b","action":{"type":"terminal/output","data":"","_meta":3}}`, "terminal/output: _meta is not an object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ahp.DecodeDispatch([]byte(tt.params))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestDecodeDispatch(t *testing.T) {
	tests := map[string]struct {
		params string
		want   ahp.Dispatch
	}{
		"output": {
			`{"channel":"a:b","clientSeq":0,"action":{"type":"terminal/output","data":"x","_meta":{"tether/offset":9,"other":[]}}}`,
			ahp.Dispatch{Channel: "a:b", HasClientSeq: true, Kind: "terminal/output", Data: []byte(`"x"`), Offset: 9},
		},
		"no clientSeq": {
			`{"action":{"data":"\n","type":"terminal/input"},"channel":"a:b","clientSeq":null}`,
			ahp.Dispatch{Channel: "a:b", Kind: "terminal/input", Data: []byte(`"\n"`), Offset: -1},
		},
		"unknown with data": {
			`{"channel":"a:b","clientSeq":5,"action":{"type":"future/x","data":{"deep":[1]}}}`,
			ahp.Dispatch{Channel: "a:b", ClientSeq: 5, HasClientSeq: true, Kind: "future/x", Offset: -1},
		},
		"escapes in names": {
			`{"ch\u0061nnel":"\u0061:b","clientSeq":5,"action":{"type":"terminal\/cleared"}}`,
			ahp.Dispatch{Channel: "a:b", ClientSeq: 5, HasClientSeq: true, Kind: "terminal/cleared", Offset: -1},
		},
		"quotes and backslashes": {
			`{"channel":"a:b","action":{"x":"\\","type":"terminal/output","y":"\\\"","data":"\\\\\"}\\","z":"\""}}`,
			ahp.Dispatch{Channel: "a:b", Kind: "terminal/output", Data: []byte(`"\\\\\"}\\"`), Offset: -1},
		},
		"members of members": {
			`{"channel":"a:b","action": { "n" : [ {"type":"x"}, "]", -1.5e3 ] ,"type" : "terminal/output" , "m":{"data":"y","o":{}}, "data" :"" , "t":true} }`,
			ahp.Dispatch{Channel: "a:b", Kind: "terminal/output", Data: []byte(`""`), Offset: -1},
		},
		"keys with escapes": {
			`{"channel":"a:b","action":{"ty\u0070e":"terminal/output","\"data":"no","d\u0061ta":"yes","_meta":{"tether\/offset":7}}}`,
			ahp.Dispatch{Channel: "a:b", Kind: "terminal/output", Data: []byte(`"yes"`), Offset: 7},
		},
		"last duplicate wins": {
			`{"channel":"x:y","channel":"a:b","action":1,"action":{"type":"terminal/output","data":1,"data":"z","_meta":null}}`,
			ahp.Dispatch{Channel: "a:b", Kind: "terminal/output", Data: []byte(`"z"`), Offset: -1},
		},
	}
	var reused ahp.Dispatch
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := must.Get(ahp.DecodeDispatch([]byte(tt.params)))(t)
			must.Do(t, reused.Decode([]byte(tt.params)))
			if diff := cmp.Diff(got, reused); diff != "" {
				t.Errorf("a Dispatch used before differs (-new +used):\n%s", diff)
			}
			got.Action = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A channel that equals the last one only before its escapes are decoded is another
// channel.
func TestDecodeReuseSeesEscapes(t *testing.T) {
	var d ahp.Dispatch
	for _, tt := range []struct{ quoted, want string }{
		{`"a:\\u0062"`, `a:\u0062`}, {`"a:\u0062"`, `a:b`}, {`"a:b"`, `a:b`}, {"\"a:\xff\"", "a:\ufffd"}, {`"a:c"`, `a:c`},
	} {
		p := fmt.Sprintf(`{"channel":%s,"action":{"type":"terminal/cleared"}}`, tt.quoted)
		must.Do(t, d.Decode([]byte(p)))
		if d.Channel != tt.want {
			t.Errorf("channel %s reads as %q, want %q", tt.quoted, d.Channel, tt.want)
		}
	}
}

func TestDecodeEnvelope(t *testing.T) {
	tests := map[string]struct {
		params string
		want   ahp.EnvelopeView
	}{
		"data": {
			`{"channel":"a:b","serverSeq":3000000000,"action":{"type":"terminal/data","data":"x"}}`,
			ahp.EnvelopeView{Channel: "a:b", ServerSeq: 3_000_000_000, Kind: "terminal/data", Data: []byte(`"x"`)},
		},
		"origin": {
			`{"channel":"a:b","serverSeq":1,"origin":{"clientId":"c","clientSeq":0},"action":{"type":"terminal/cleared"}}`,
			ahp.EnvelopeView{Channel: "a:b", ServerSeq: 1, HasOrigin: true, Origin: ahp.Origin{ClientID: "c"}, Kind: "terminal/cleared"},
		},
		"null origin, as some hosts send it": {
			`{"channel":"a:b","serverSeq":1,"origin":null,"rejectionReason":null,"action":{"type":"terminal/cleared"}}`,
			ahp.EnvelopeView{Channel: "a:b", ServerSeq: 1, Kind: "terminal/cleared"},
		},
		"rejected": {
			`{"channel":"a:b","serverSeq":1,"rejectionReason":"no","action":{"type":"terminal/input","data":"rm\r"}}`,
			ahp.EnvelopeView{Channel: "a:b", ServerSeq: 1, Rejected: true, RejectionReason: "no", Kind: "terminal/input", Data: []byte(`"rm\r"`)},
		},
		"rejected without a word": {
			`{"channel":"a:b","serverSeq":1,"rejectionReason":"","action":{"type":"x"}}`,
			ahp.EnvelopeView{Channel: "a:b", ServerSeq: 1, Rejected: true, Kind: "x"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := must.Get(ahp.DecodeEnvelope([]byte(tt.params)))(t)
			got.Action = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeEnvelopeErrors(t *testing.T) {
	tests := map[string]struct{ params, want string }{
		"no serverSeq":  {`{"channel":"a:b","action":{"type":"x"}}`, "action: serverSeq is missing"},
		"no channel":    {`{"serverSeq":1,"action":{"type":"x"}}`, "action: channel is missing"},
		"bad origin":    {`{"channel":"a:b","serverSeq":1,"origin":{"clientId":4},"action":{"type":"x"}}`, "action: origin: clientId is not a string"},
		"empty origin":  {`{"channel":"a:b","serverSeq":1,"origin":{},"action":{"type":"x"}}`, "action: origin: clientId is missing"},
		"bad rejection": {`{"channel":"a:b","serverSeq":1,"rejectionReason":{},"action":{"type":"x"}}`, "action: rejectionReason is not a string"},
		"no action":     {`{"channel":"a:b","serverSeq":1}`, "action is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ahp.DecodeEnvelope([]byte(tt.params))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	data := []byte(strings.Repeat("\x1b[32mok\x1b[0m  ./agent/term 0.03s\r\n", 500))
	buf := make([]byte, 0, 4*len(data))
	quoted, _ := json.Marshal(string(data))
	origin := &ahp.Origin{ClientID: "laptop", ClientSeq: 9}
	var d ahp.Dispatch
	var v ahp.EnvelopeView
	output := params(t, "dispatchAction", ahp.AppendOutput(nil, channel, 1, data, 77))
	envelope := params(t, "action", ahp.AppendData(nil, channel, 1, origin, quoted))
	for name, f := range map[string]func(){
		"AppendOutput":    func() { buf = ahp.AppendOutput(buf[:0], channel, 1, data, 77) },
		"AppendData":      func() { buf = ahp.AppendData(buf[:0], channel, 1, origin, quoted) },
		"Dispatch.Decode": func() { _ = d.Decode(output) },
		"Envelope.Decode": func() { _ = v.Decode(envelope) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if d.Offset != 77 || !v.HasOrigin {
		t.Errorf("decoded %+v and %+v", d.Offset, v.Origin)
	}
}

func TestDispatchedTo(t *testing.T) {
	const uri = "ahp-terminal:/6d1e"
	for _, c := range []struct{ msg, want string }{
		{string(ahp.AppendOutput(nil, uri, 1, []byte(`"channel":"other"`), 3)), uri},
		{string(ahp.AppendDispatch(nil, uri, 1, ahp.TerminalCleared{}, "1.0.0")), uri},
		{string(ahp.AppendState(nil, ahp.StateParams{Channel: uri, Input: ahp.InputQuiet})), uri},
		{`{"jsonrpc":"2.0","method":"ping","params":{"channel":"` + uri + `"}}`, ""},
		{`{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"cut`, ""},
		{"", ""},
	} {
		if got := ahp.DispatchedTo([]byte(c.msg)); got != c.want {
			t.Errorf("%s: %q, want %q", c.msg, got, c.want)
		}
	}
}

func FuzzAppendOutput(f *testing.F) {
	f.Add("a:b", int64(1), []byte("x\xff\xe7\xab\xaf\u2028<"), int64(4))
	f.Fuzz(func(t *testing.T, channel string, seq int64, data []byte, offset int64) {
		msg := ahp.AppendOutput(nil, channel, seq, data, offset)
		if quoted, _ := json.Marshal(channel); string(quoted) == `"`+channel+`"` && ahp.DispatchedTo(msg) != channel {
			t.Errorf("dispatched to %q, want %q", ahp.DispatchedTo(msg), channel)
		}
		raw := params(t, "dispatchAction", msg)
		var p ahp.DispatchParams
		must.Do(t, json.Unmarshal(raw, &p))
		a := must.Get(ahp.DecodeAction(p.Action))(t)
		want := ahp.TerminalOutput{Data: eachBad(string(data))}
		if offset >= 0 {
			want.Offset = &offset
		}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if p.Channel != eachBad(channel) || p.ClientSeq != seq {
			t.Errorf("channel %q, seq %d, want %q and %d", p.Channel, p.ClientSeq, channel, seq)
		}
		if channel == "" {
			return
		}
		if d, err := ahp.DecodeDispatch(raw); err != nil || d.Offset != max(offset, -1) || d.ClientSeq != seq {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// eachBad replaces each byte that is not UTF-8, not each run of them.
func eachBad(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// strictDispatch decodes with encoding/json, by exact member names. The last of duplicate
// members counts.
func strictDispatch(raw []byte) (d ahp.Dispatch, err error) {
	var p, a, m map[string]json.RawMessage
	d.Offset = -1
	if err = json.Unmarshal(raw, &p); err != nil {
		return d, err
	}
	err = firstOf(required(p["channel"], &d.Channel), json.Unmarshal(orNull(p["clientSeq"]), &d.ClientSeq),
		json.Unmarshal(orNull(p["action"]), &a), required(a["type"], &d.Kind))
	d.HasClientSeq = string(orNull(p["clientSeq"])) != "null"
	d.Action = p["action"]
	if err != nil {
		return d, err
	}
	if d.Kind == ahp.ActionTerminalOutput || d.Kind == ahp.ActionTerminalData || d.Kind == ahp.ActionTerminalInput {
		var text *string
		if err = json.Unmarshal(orNull(a["data"]), &text); err == nil && text == nil {
			err = fmt.Errorf("no data")
		}
		d.Data = a["data"]
	}
	if d.Kind == ahp.ActionTerminalOutput {
		var offset *int64
		err = firstOf(err, json.Unmarshal(orNull(a["_meta"]), &m), json.Unmarshal(orNull(m[ahp.OffsetKey]), &offset))
		if offset != nil {
			if d.Offset = *offset; d.Offset < 0 {
				err = fmt.Errorf("negative")
			}
		}
	}
	return d, err
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func required(raw json.RawMessage, s *string) error {
	if err := json.Unmarshal(orNull(raw), s); err != nil {
		return err
	}
	if *s == "" {
		return fmt.Errorf("missing")
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func FuzzDecodeDispatch(f *testing.F) {
	f.Add([]byte(`{"channel":"a:b","clientSeq":1,"action":{"type":"terminal/output","data":"x","_meta":{"tether/offset":3}}}`))
	f.Add([]byte(`{"channel":"a:b","action":{"type":"terminal/resized","cols":1,"rows":2}}`))
	f.Add([]byte(` {"channel":"\u0061:","channel":null,"action":null,"clientSeq":-0}`))
	f.Add([]byte(`{"channel":"a:b","action":{"n":[{"type":"x"},"]"],"\u0074ype":"terminal/input","data":"\\\"}"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := ahp.DecodeDispatch(raw)
		want, wantErr := strictDispatch(raw)
		if err == nil != (wantErr == nil) {
			if err != nil && strings.Contains(err.Error(), "nesting") {
				t.Skip("the nesting bound is ours")
			}
			t.Fatalf("got error %v, encoding/json %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got, cmp.Transformer("raw", func(b []byte) string { return string(bytes.TrimSpace(b)) })); diff != "" {
			t.Errorf("(-encoding/json +got):\n%s", diff)
		}
	})
}

// CutOutput and CutData find the same parts as Decode, and a message that they accept is
// valid if its text is. They refuse messages of another form.
func FuzzCut(f *testing.F) {
	f.Add(ahp.AppendOutput(nil, "ahp-terminal:/1", 7, []byte("a \"\\\x1b[1mtext\r\n"), 1<<40))
	f.Add(ahp.AppendOutput(nil, "ahp-terminal:/1", 0, nil, -1))
	f.Add(ahp.AppendData(nil, "ahp-terminal:/1", 7, nil, []byte(`"a \"\\\u001b[1mtext\r\n"`)))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"a:b","clientSeq":01,"action":{"type":"terminal/output","data":"x\q"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"action","params":{"channel":"a:\u0062","serverSeq":1,"action":{"type":"terminal/data","data":"x"}}}`))
	f.Fuzz(func(t *testing.T, msg []byte) {
		var output, decodedOutput ahp.Dispatch
		var data, decodedData ahp.EnvelopeView
		decode, text := decodedOutput.Decode, []byte(nil)
		switch {
		case output.CutOutput(msg):
			text = output.Data
		case data.CutData(msg):
			decode, text = decodedData.Decode, data.Data
		default:
			return
		}
		if _, err := jsonspan.CheckString(text); (err == nil) != jsonspan.Valid(msg) {
			t.Fatalf("%q is valid: %v; its text: %v", msg, jsonspan.Valid(msg), err)
		} else if err != nil {
			return
		}
		err := jsonspan.Object(msg, func(key, value []byte) error {
			if string(key) == "params" {
				return decode(value)
			}
			return nil
		})
		output.Action = decodedOutput.Action // CutOutput does not set it
		if diff := cmp.Diff(decodedOutput, output) + cmp.Diff(decodedData, data); diff != "" || err != nil {
			t.Fatalf("%q: %v (-decoded +cut):\n%s", msg, err, diff)
		}
	})
}

// The messages of a flood have the form that CutOutput and CutData accept.
func TestFloodsAreCutOut(t *testing.T) {
	var d ahp.Dispatch
	var v ahp.EnvelopeView
	for _, text := range []string{"", "plain\r\n", "\x1b[1m\"\\", "世界"} {
		quoted, _ := json.Marshal(text)
		if !d.CutOutput(ahp.AppendOutput(nil, channel, 1, []byte(text), 1<<30)) || !v.CutData(ahp.AppendData(nil, channel, 1<<40, nil, quoted)) {
			t.Errorf("%q is not cut out of what this package makes of it", text)
		}
	}
}

func FuzzDecodeEnvelope(f *testing.F) {
	f.Add([]byte(`{"channel":"a:b","serverSeq":1,"origin":{"clientId":"c","clientSeq":2},"action":{"type":"terminal/data","data":"x"}}`))
	f.Add([]byte(`{"channel":"a:b","serverSeq":1,"rejectionReason":"no","action":{"type":"terminal/input","data":"x"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := ahp.DecodeEnvelope(raw)
		if err != nil {
			return
		}
		// An accepted message must have the same meaning as an Envelope made of its
		// parts.
		e := ahp.Envelope{Channel: v.Channel, Action: v.Action, ServerSeq: v.ServerSeq}
		if v.HasOrigin {
			e.Origin = &v.Origin
		}
		if v.Rejected {
			e.RejectionReason = &v.RejectionReason
		}
		again := must.Get(json.Marshal(e))(t)
		w := must.Get(ahp.DecodeEnvelope(again))(t)
		w.Action, w.Data, v.Action, v.Data = nil, nil, nil, nil // compacted and escaped by encoding/json
		if diff := cmp.Diff(v, w); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}

func BenchmarkAppendOutput(b *testing.B) {
	benchmark(b, func(data []byte) func() {
		var buf []byte
		return func() { buf = ahp.AppendOutput(buf[:0], channel, 1, data, 1<<30) }
	})
}

func BenchmarkAppendData(b *testing.B) {
	benchmark(b, func(data []byte) func() {
		var buf []byte
		quoted, _ := json.Marshal(string(data))
		return func() { buf = ahp.AppendData(buf[:0], channel, 1, nil, quoted) }
	})
}

func BenchmarkDecodeDispatch(b *testing.B) {
	benchmark(b, func(data []byte) func() {
		var d ahp.Dispatch
		p := params(b, "dispatchAction", ahp.AppendOutput(nil, channel, 1, data, 1<<30))
		return func() { _ = d.Decode(p) }
	})
}

func BenchmarkDecodeEnvelope(b *testing.B) {
	benchmark(b, func(data []byte) func() {
		var v ahp.EnvelopeView
		quoted, _ := json.Marshal(string(data))
		p := params(b, "action", ahp.AppendData(nil, channel, 1, nil, quoted))
		return func() { _ = v.Decode(p) }
	})
}

// benchmark measures bytes of terminal text, 16 KiB at a time.
func benchmark(b *testing.B, prepare func(data []byte) func()) {
	for name, line := range map[string]string{
		"plain":    "127.0.0.1 - - [01/Jan/2026 00:00:00] GET /index.html HTTP/1.1 200 -\r\n",
		"coloured": "\x1b[1;31mcompile\x1b[0m \x1b[90m0042\x1b[0m src/parts/module7.ts \x1b[32m✓\x1b[0m 12 ms\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(strings.Repeat(line, (16<<10)/len(line)))
			f := prepare(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
