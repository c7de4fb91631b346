package ahp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tether/ahp"
)

func TestDecodeAck(t *testing.T) {
	var p ahp.AckParams
	for range 2 { // the second time into a used value
		if err := p.Decode([]byte(`{"applied":12, "channel":"ahp-terminal:\/a"}`)); err != nil || p != (ahp.AckParams{Channel: "ahp-terminal:/a", Applied: 12}) {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	valid := []byte(`{"channel":"ahp-terminal:/a","applied":9007199254740993}`)
	if n := testing.AllocsPerRun(100, func() { _ = p.Decode(valid) }); n > 0 || p.Applied != 9007199254740993 {
		t.Errorf("%v allocations, %+v", n, p)
	}
	for params, want := range map[string]string{
		`[]`:                                   "not a JSON object",
		`{"applied":1}`:                        "channel is missing",
		`{"channel":5,"applied":1}`:            "channel is not a string",
		`{"channel":"ahp-terminal:/a"}`:        "applied is missing",
		`{"channel":"a:/b","applied":1.5}`:     "applied is not a whole number",
		`{"channel":"a:/b","applied":-1}`:      "want 0 or more",
		`{"channel":"no uri","applied":1}`:     "holds a space",
		`{"channel":"a:/b","applied":"1"}`:     "applied is not a whole number",
		`{"channel":"a:/b","applied":null}`:    "applied is missing",
		`{"channel":"\u0000:/b","applied":1}`:  "",
		`{"channel":"","applied":1,"_meta":1}`: "channel is empty",
	} {
		if err := p.Decode([]byte(params)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want something with %q", params, err, want)
		}
	}
}

// Decode and encoding/json accept the same inputs and return the same values.
func FuzzDecodeAck(f *testing.F) {
	f.Add(`{"channel":"ahp-terminal:/a","applied":12}`)
	f.Add(`{"applied":0,"channel":"a:\/b","channel":"c:/d"}`)
	f.Fuzz(func(t *testing.T, params string) {
		if !json.Valid([]byte(params)) || strings.TrimSpace(params) != params {
			return
		}
		var got, want ahp.AckParams
		err := got.Decode([]byte(params))
		if werr := ahp.DecodeParams([]byte(params), &want); err == nil && (werr != nil || got != want) {
			t.Errorf("%q: got %+v, encoding/json has %+v, %v", params, got, want, werr)
		}
	})
}
