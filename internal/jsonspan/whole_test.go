package jsonspan_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"tether/internal/jsonspan"
)

func TestWhole(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":20.0,"b":[-3.00, 2e1,1.5],"c":"4.0"}`: `{"a":20,"b":[-3, 20,1.5],"c":"4.0"}`,
		`{"a":"\"5.0","b":5.0}`:                     `{"a":"\"5.0","b":5}`,
		`20.0`:                                      `20`,
		`-0.0`:                                      `0`,
		`{"n":20}`:                                  `{"n":20}`,
		`9007199254740992.0`:                        `9007199254740992`,
		`9007199254740993e1`:                        `9007199254740993e1`,
		`1e400`:                                     `1e400`,
		`1.`:                                        `1.`,
		`{"a":1.0`:                                  `{"a":1`,
		`"unended 1.0`:                              `"unended 1.0`,
		`"\`:                                        `"\`,
		``:                                          ``,
	} {
		if got := string(jsonspan.Whole([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// The text means the same afterwards, and invalid text does not become valid.
func FuzzWhole(f *testing.F) {
	f.Add([]byte(`{"a":20.0,"b":"1.0\"2.0"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after any
		out := jsonspan.Whole(data)
		err, outErr := json.Unmarshal(data, &before), json.Unmarshal(out, &after)
		if (err == nil) != (outErr == nil) || err == nil && !reflect.DeepEqual(before, after) {
			t.Errorf("%q (%v) became %q (%v)", data, err, out, outErr)
		}
	})
}
