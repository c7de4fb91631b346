package main

import (
	"testing"
)

func TestPeekMCP(t *testing.T) {
	for line, want := range map[string]peekedMCP{
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                                     {id: "7", method: "ping"},
		`{"jsonrpc":"2.0","id":"a\"b","result":{"id":9,"method":"no"}}`:                                {id: `"a\"b"`},
		`{"method":"notifications/initialized"}`:                                                       {method: "notifications/initialized"},
		`{"id":1,"method":"resources/subscribe","params":{"uri":"terminal:///x","other":[1,{"a":2}]}}`: {id: "1", method: "resources/subscribe", uri: "terminal:///x"},
		`{"id":null,"method":"ping"}`:                                                                  {method: "ping"},
		`{"id":{"a":1},"method":"ping"}`:                                                               {method: "ping"},
		`{"id":1,"method":7}`:                                                                          {id: "1"},
		`{"id":1,"method":"x","params":[1]}`:                                                           {id: "1", method: "x"},
		`{"method":"notifications/cancelled","params":{"requestId":3}}`:                                {method: "notifications/cancelled", cancelled: "3"},
		`{"id":1`:                    {},
		`[{"id":1,"method":"ping"}]`: {},
		"":                           {},
		"null":                       {},
	} {
		if got := peekMCP([]byte(line + "\n")); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// FuzzPeekMCP looks at anything: an id is JSON that can be sent back.
func FuzzPeekMCP(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"x"}}`))
	f.Add([]byte(`{"id":-0.5e1}`))
	f.Add([]byte(`{"id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m := peekMCP(line)
		if m.id == "" {
			return
		}
		if back := peekMCP([]byte(`{"jsonrpc":"2.0","id":` + m.id + `,"error":{}}`)); back.id != m.id {
			t.Errorf("%q has the id %q, which reads back as %q", line, m.id, back.id)
		}
	})
}
