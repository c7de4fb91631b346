package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

func TestLogText(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	stamp := at.Local().Format(time.DateTime)
	for _, c := range []struct{ name, in, want string }{
		{"fields in order", `{"level":"info","pid":7,"version":"1 2","time":"2026-05-04T03:02:01Z","message":"ready","a":"","ok":true}`,
			stamp + ` info  ready a= ok=true pid=7 version="1 2"`},
		{"no time", `{"level":"warn","message":"x"}`, `warn  x`},
		{"no JSON", "panic: \x1b[2J", "panic: \uFFFD[2J"},
		{"escapes", `{"level":"info","message":"\u001b[2J\n","host":"\u001b]0;x","\u009bk":"\u009b"}`, "info  \uFFFD[2J  host=\"\\x1b]0;x\" \uFFFDk=\"\\u009b\""},
		{"large numbers", `{"level":"info","message":"n","n":12345678901234567890}`, `info  n n=12345678901234567890`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size < 20; size += 6 { // in pieces of any size
				var out strings.Builder
				l := newLogText(&out, false)
				for rest := []byte(c.in + "\n"); len(rest) > 0; rest = rest[min(size, len(rest)):] {
					must.Get(l.Write(rest[:min(size, len(rest))]))(t)
				}
				if out.String() != c.want+"\n" {
					t.Errorf("got  %q\nwant %q", out.String(), c.want)
				}
			}
		})
	}
	var out bytes.Buffer
	l := newLogText(&out, true)
	if _, err := l.Write([]byte(`{"level":"error","message":"x"}` + "\n")); err != nil || out.String() != "\x1b[31merror\x1b[0m x\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// The endless line of a torn file does not fill the memory.
func TestLogTextIsBounded(t *testing.T) {
	var out bytes.Buffer
	l := newLogText(&out, false)
	for range 64 {
		must.Get(l.Write(make([]byte, 64<<10)))(t)
		if len(l.rest) > maxLogLine+64<<10 {
			t.Fatalf("%d bytes are kept", len(l.rest))
		}
	}
}
