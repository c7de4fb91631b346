package jsonspan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tether/internal/jsonspan"
	"tether/internal/testkit/check"
)

type member struct{ Key, Value string }

func members(t *testing.T, data string) ([]member, error) {
	t.Helper()
	var got []member
	err := jsonspan.Object([]byte(data), func(key, value []byte) error {
		got = append(got, member{string(key), string(value)})
		return nil
	})
	return got, err
}

func TestObject(t *testing.T) {
	deep := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
	}
	tests := []struct {
		name, in string
		want     []member
		wantErr  string // empty: none
	}{
		{"empty", `{}`, nil, ""},
		{"space", " {\t\"a\" :\r1\n} ", []member{{"a", "1"}}, ""},
		{"null", "null ", nil, ""},
		{"kinds", `{"a":"x","b":-1.5e+3,"c":true,"d":[1,{"e":{}}],"f":{"g":[]},"h":null}`, []member{
			{"a", `"x"`}, {"b", "-1.5e+3"}, {"c", "true"}, {"d", `[1,{"e":{}}]`}, {"f", `{"g":[]}`}, {"h", "null"},
		}, ""},
		{"duplicates in order", `{"a":1,"b":2,"a":3}`, []member{{"a", "1"}, {"b", "2"}, {"a", "3"}}, ""},
		{"escaped key", `{"\u0061\n":"\u0061"}`, []member{{"a\n", `"\u0061"`}}, ""},
		{"invalid UTF-8", "{\"a\xff\":\"b\xff\"}", []member{{"a\ufffd", "\"b\xff\""}}, ""},
		{"deepest", deep(jsonspan.MaxDepth), []member{{"a", deep(jsonspan.MaxDepth)[5 : 5+2*jsonspan.MaxDepth-2]}}, ""},
		{"too deep", deep(jsonspan.MaxDepth + 1), nil, "nesting too deep at byte 68"},
		{"nothing", " ", nil, "unexpected end at byte 1"},
		{"array", `[1]`, nil, "not a JSON object"},
		{"number", ` 1`, nil, "not a JSON object"},
		{"broken array", `[1,]`, nil, "expected a value at byte 3"},
		{"broken null", `nul`, nil, "expected a value at byte 0"},
		{"trailing text", `{}{}`, nil, "text after the value at byte 2"},
		{"trailing comma", `{"a":1,}`, []member{{"a", "1"}}, "expected a key at byte 7"},
		{"no colon", `{"a" 1}`, nil, "expected a colon at byte 5"},
		{"no value", `{"a":}`, nil, "expected a value at byte 5"},
		{"no comma", `{"a":1 "b":2}`, []member{{"a", "1"}}, "expected a comma or the end of the object or array at byte 7"},
		{"unquoted key", `{a:1}`, nil, "expected a key at byte 1"},
		{"leading zero", `{"a":01}`, []member{{"a", "0"}}, "expected a comma or the end of the object or array at byte 6"},
		{"bare minus", `{"a":-}`, nil, "expected a digit at byte 6"},
		{"bare fraction", `{"a":1.}`, nil, "expected a digit at byte 7"},
		{"bare exponent", `{"a":1e+}`, nil, "expected a digit at byte 8"},
		{"control character", "{\"a\":\"\x1b\"}", nil, "control character in a string at byte 6"},
		{"bad escape", `{"a":"\x"}`, nil, "bad escape at byte 6"},
		{"short unicode escape", `{"a":"\u12"}`, nil, "bad escape at byte 6"},
		{"open string", `{"a":"bcdefghijk`, nil, "unexpected end at byte 16"},
		{"open escape", `{"a":"\`, nil, "bad escape at byte 6"},
		{"open object", `{"a":1`, []member{{"a", "1"}}, "unexpected end at byte 6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := members(t, tt.in)
			check.Equal(t, fmt.Sprintf("Object(%q): members", tt.in), tt.want, got)
			switch {
			case tt.wantErr == "" && err != nil:
				t.Errorf("Object(%q) = %v", tt.in, err)
			case tt.wantErr != "" && (err == nil || strings.TrimPrefix(err.Error(), "jsonspan: ") != tt.wantErr):
				t.Errorf("Object(%q) = %v, want %q", tt.in, err, tt.wantErr)
			}
		})
	}
}

func TestObjectReturnsErrorOfF(t *testing.T) {
	stop := errors.New("stop")
	calls := 0
	err := jsonspan.Object([]byte(`{"a":1,"b":2}`), func(_, _ []byte) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("got %v after %d calls, want %v after 1", err, calls, stop)
	}
}

func TestObjectErrNotObject(t *testing.T) {
	for in, want := range map[string]bool{`[]`: true, `"a"`: true, `0`: true, `[`: false, `x`: false, `{`: false} {
		_, err := members(t, in)
		if got := errors.Is(err, jsonspan.ErrNotObject); got != want {
			t.Errorf("Object(%q) = %v; is ErrNotObject: %v, want %v", in, err, got, want)
		}
	}
}

func TestObjectSpansCannotGrow(t *testing.T) {
	data := []byte(`{"a":1,"b":2}`)
	err := jsonspan.Object(data, func(key, value []byte) error {
		_ = append(key, 'x')
		_ = append(value, 'x')
		return nil
	})
	if err != nil || string(data) != `{"a":1,"b":2}` {
		t.Errorf("appending to spans changed the data: %s, %v", data, err)
	}
}

func TestObjectDoesNotAllocate(t *testing.T) {
	data := []byte(`{"jsonrpc":"2.0","method":"action","params":{"a":[1,2,{"b":"\u001b[0m"}]}}`)
	var method, params []byte
	allocs := testing.AllocsPerRun(100, func() {
		_ = jsonspan.Object(data, func(key, value []byte) error {
			switch string(key) {
			case "method":
				method = value
			case "params":
				params = value
			}
			return nil
		})
	})
	if allocs != 0 || len(method) == 0 || len(params) == 0 {
		t.Errorf("%v allocations, want 0 (method %s, params %s)", allocs, method, params)
	}
}

func TestValid(t *testing.T) {
	for in, want := range map[string]bool{
		`{}`: true, ` [1, "a"] `: true, `nul`: false, ``: false, `1 2`: false, `"\ud800"`: true, "\ufeff{}": false,
	} {
		if got := jsonspan.Valid([]byte(in)); got != want {
			t.Errorf("Valid(%q) = %v, want %v", in, got, want)
		}
	}
}

// depth returns how deeply data, valid JSON, is nested.
func depth(data []byte) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(data))
	for n := 0; ; {
		tok, err := d.Token()
		if err != nil {
			return deepest
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			n++
			deepest = max(deepest, n)
		case json.Delim('}'), json.Delim(']'):
			n--
		}
	}
}

// FuzzObject checks that Object accepts the same texts as encoding/json, and finds the
// same members.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[true,null,{"c":-0.5e7}],"a":"\u001b[0m\ud83d\ude00"}`, `null`, `{"\u00e9":"é","é":1}`,
		`[{}]`, `{"a":"` + strings.Repeat("x", 40) + `\n"}`, "{\"\xff\":\"\xff\"}", `{"a":1}x`, `{"a":"\u12"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]json.RawMessage{}
		err := jsonspan.Object(data, func(key, value []byte) error {
			got[string(key)] = value
			return nil
		})
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(data, &want)
		if wantErr == nil && depth(data) > jsonspan.MaxDepth {
			wantErr = errors.New("too deep")
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("Object(%q) = %v, encoding/json: %v", data, err, wantErr)
		}
		if err != nil {
			if notObject := errors.Is(err, jsonspan.ErrNotObject); notObject && !json.Valid(data) {
				t.Fatalf("Object(%q) = %v, but it is not valid", data, err)
			}
			return
		}
		if len(got) != len(want) {
			t.Fatalf("Object(%q): keys %q, want %q", data, got, want)
		}
		for k, v := range want {
			if !bytes.Equal(got[k], v) {
				t.Fatalf("Object(%q): %q = %q, want %q", data, k, got[k], v)
			}
		}
	})
}

func TestBoundedObject(t *testing.T) {
	for _, c := range []struct {
		data string
		max  int
		want error
	}{
		{`{}`, 1, nil},
		{`{"a":1,"b":[2,{"c":null}]}`, 5, nil},
		{`{"a":1,"b":[2,{"c":null}]}`, 4, jsonspan.ErrTooMany},
		{`{"a":1,"b":[2,{"c":null}]}`, 0, nil},
		{`{"a":[` + strings.Repeat("{},", 1000) + `{}]}`, 1000, jsonspan.ErrTooMany},
		{`{"a":"` + strings.Repeat("{},", 1000) + `"}`, 1, nil},
	} {
		if err := jsonspan.BoundedObject([]byte(c.data), c.max, func(_, _ []byte) error { return nil }); err != c.want {
			t.Errorf("at most %d values in %.30s: %v, want %v", c.max, c.data, err, c.want)
		}
	}
}
