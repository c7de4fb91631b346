package jsonspan_test

import (
	"errors"
	"testing"

	"tether/internal/jsonspan"
)

// Text that encoding/json would replace is found, wherever it is, and no other.
func TestCheckText(t *testing.T) {
	for data, want := range map[string]error{
		``:                       nil,
		`{"a":"grün \u00e9 \n"}`: nil,
		`"\ud83d\ude00"`:         nil,
		`"\uD83D\uDE00x"`:        nil,
		`"\\ud83d"`:              nil,
		`"\\\ud83d\ude00"`:       nil,
		`"\ud83d"`:               jsonspan.ErrSurrogate,
		`"\ud83d\u0041"`:         jsonspan.ErrSurrogate,
		`"\ud83d\ud83d\ude00"`:   jsonspan.ErrSurrogate,
		`"\ude00"`:               jsonspan.ErrSurrogate,
		`{"\uDFFF":1}`:           jsonspan.ErrSurrogate,
		`"\\\ud83d"`:             jsonspan.ErrSurrogate,
		"\"a\xe9\"":              jsonspan.ErrNotUTF8,
		"\"\xed\xa0\x80\"":       jsonspan.ErrNotUTF8,
		`"\ud83`:                 nil, // not JSON, which others say
		`"\`:                     nil,
	} {
		if got := jsonspan.CheckText([]byte(data)); !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", data, got, want)
		}
	}
}
