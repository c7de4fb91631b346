package asciicast_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/internal/asciicast"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

var (
	header = asciicast.Header{Cols: 80, Rows: 24, Started: time.Unix(1700000000, 0).UTC(), Title: "a \"b\" <c>", Term: "xterm-256color"}
	events = []asciicast.Event{
		{At: 250 * time.Millisecond, Kind: asciicast.Output, Data: "\x1b[31mhé\x1b[0m\r\n"},
		{At: time.Second, Kind: asciicast.Resize, Data: "100x40"},
		{At: time.Second, Kind: asciicast.Output, Data: "x"},
		{At: 61 * time.Second, Kind: asciicast.Exit, Data: "3"},
	}
)

func write(t *testing.T, version int, all []asciicast.Event) string {
	t.Helper()
	var out bytes.Buffer
	h := header
	h.Version = version
	w := must.Get(asciicast.NewWriter(&out, h))(t)
	for _, e := range all {
		must.Do(t, w.Write(e))
	}
	return out.String()
}

func read(in string) (h asciicast.Header, all []asciicast.Event, err error) {
	r, err := asciicast.NewReader(strings.NewReader(in))
	if err != nil {
		return h, nil, err
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header, all, nil
		}
		if err != nil {
			return r.Header, all, err
		}
		all = append(all, e)
	}
}

// The lines match the published format.
func TestLines(t *testing.T) {
	const esc = `\u001b`
	for version, want := range map[int]string{
		2: `{"version":2,"width":80,"height":24,"timestamp":1700000000,"title":"a \"b\" <c>","env":{"TERM":"xterm-256color"}}
[0.250000,"o","` + esc + `[31mhé` + esc + `[0m\r\n"]
[1.000000,"r","100x40"]
[1.000000,"o","x"]
`,
		3: `{"version":3,"term":{"cols":80,"rows":24,"type":"xterm-256color"},"timestamp":1700000000,"title":"a \"b\" <c>"}
[0.250000,"o","` + esc + `[31mhé` + esc + `[0m\r\n"]
[0.750000,"r","100x40"]
[0.000000,"o","x"]
[60.000000,"x","3"]
`,
	} {
		got := write(t, version, events)
		check.Equal(t, fmt.Sprintf("version %d", version), want, got)
		h, back, err := read(got)
		wantHeader, wantEvents := header, events
		wantHeader.Version = version
		if version == 2 {
			wantEvents = events[:3]
		}
		if diff := cmp.Diff(wantHeader, h) + cmp.Diff(wantEvents, back); err != nil || diff != "" {
			t.Errorf("version %d read back: %v\n%s", version, err, diff)
		}
	}
	if _, err := asciicast.NewWriter(io.Discard, asciicast.Header{Version: 1}); err == nil {
		t.Error("version 1 is written")
	}
}

// Reader accepts what other programs write: comments, markers, input, and times that go
// back.
func TestForeign(t *testing.T) {
	h, all, err := read(`{"version": 3, "term": {"cols": 5, "rows": 6, "theme": {"fg": "#fff"}}, "command": "bash", "tags": []}
# a comment

[0.5, "i", "ls\r"]
[0.1, "m", "chapter"]
[0, "o", "x"]
`)
	if err != nil || h.Cols != 5 || len(all) != 3 || all[2].At != 600*time.Millisecond {
		t.Errorf("%+v, %+v, %v", h, all, err)
	}
	_, all, err = read("{\"version\":2,\"width\":5,\"height\":6}\n[2,\"o\",\"a\"]\n[1,\"o\",\"b\"]\n")
	if err != nil || all[1].At != 2*time.Second {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestRefused(t *testing.T) {
	const good = "{\"version\":2,\"width\":5,\"height\":6}\n"
	for in, want := range map[string]string{
		"":                                   "the file is empty",
		"hello":                              "line 1 is not the header of an asciicast recording",
		`{"version":1}`:                      "the recording has version 1 of asciicast; only versions 2 and 3 can be read",
		`{"version":3}`:                      "line 1: term is missing",
		`{"version":2,"width":0,"height":6}`: "line 1: the size 0x6 is out of range: 1 to 10000 columns and rows",
		good + "[1]\n{}":                     "line 3 is not an event",
		good + "[-1,\"o\",\"\"]":             "line 2: the time -1 s is out of range: 0 to 1000h0m0s",
		good + "[1e300,\"o\",\"\"]":          "line 2: the time 1e+300 s is out of range: 0 to 1000h0m0s",
	} {
		if _, _, err := read(in); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// A recording that is read, written and read again stays the same.
func FuzzReader(f *testing.F) {
	f.Add("{\"version\":2,\"width\":5,\"height\":6}\n[1,\"o\",\"a\"]\n")
	f.Add("{\"version\":3,\"term\":{\"cols\":5,\"rows\":6}}\n[1,\"o\",\"a\"]\n[0.1,\"x\",\"1\"]\n")
	f.Fuzz(func(t *testing.T, in string) {
		h, all, err := read(in)
		if err != nil {
			return
		}
		var out bytes.Buffer
		w := must.Get(asciicast.NewWriter(&out, h))(t)
		var want []asciicast.Event
		for _, e := range all {
			must.Do(t, w.Write(e))
			if h.Version == 3 || e.Kind != asciicast.Exit {
				want = append(want, e)
			}
		}
		again, back, err := read(out.String())
		if diff := cmp.Diff(h, again) + cmp.Diff(want, back); err != nil || diff != "" {
			t.Errorf("%q became\n%s: %v\n%s", in, out.String(), err, diff)
		}
	})
}
