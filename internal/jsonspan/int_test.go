package jsonspan_test

import (
	"encoding/json"
	"testing"

	"tether/internal/jsonspan"
)

func TestInt(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"-0", 0, true},
		{"42", 42, true},
		{"-7", -7, true},
		{"9223372036854775807", 1<<63 - 1, true},
		{"-9223372036854775808", -1 << 63, true},
		{"9223372036854775808", 0, false},
		{"-9223372036854775809", 0, false},
		{"99999999999999999999999999", 0, false},
		{"", 0, false},
		{"-", 0, false},
		{"+1", 0, false},
		{"01", 0, false},
		{"1.0", 0, false},
		{"1e3", 0, false},
		{" 1", 0, false},
		{`"1"`, 0, false},
		{"null", 0, false},
	}
	for _, tt := range tests {
		got, err := jsonspan.Int([]byte(tt.in))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("Int(%q) = %d, %v, want %d, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func FuzzInt(f *testing.F) {
	for _, s := range []string{"0", "-1", "9223372036854775808", "1.5", "-0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := jsonspan.Int(in)
		var want int64
		wantErr := json.Unmarshal(in, &want)
		// Unmarshal also takes null, and space around the number.
		if wantErr == nil && (len(in) == 0 || in[len(in)-1] > '9' || in[len(in)-1] < '0' || in[0] < '-') {
			return
		}
		if (err == nil) != (wantErr == nil) || err == nil && got != want {
			t.Fatalf("Int(%q) = %d, %v, encoding/json: %d, %v", in, got, err, want, wantErr)
		}
	})
}
