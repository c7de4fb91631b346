package shellint_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
	"tether/shellint"
)

// finding holds everything that a scanner and a tracker find in a stream.
type finding struct {
	spans  []shellint.Span
	marks  []string
	events []shellint.CommandEvent
}

// both scans and tracks.
type both struct {
	scanner *shellint.Scanner
	tracker shellint.Tracker
	found   finding
}

var restOptions = shellint.Options{Nonce: "n"}

func (b *both) feed(p string) {
	var r shellint.Result
	b.scanner.Scan([]byte(p), &r)
	b.take(&r)
}

func (b *both) take(r *shellint.Result) {
	for _, s := range r.Spans {
		if n := len(b.found.spans); n > 0 && b.found.spans[n-1].End == s.Start && b.found.spans[n-1].Class == s.Class && !s.Splice {
			b.found.spans[n-1].End = s.End
			continue
		}
		b.found.spans = append(b.found.spans, s)
	}
	for i := range r.Marks {
		m := &r.Marks[i]
		b.found.marks = append(b.found.marks, fmt.Sprint(m.Off, m.End, m.Kind, m.Text, m.Trusted, m.Exit))
	}
	b.tell(b.tracker.Feed(r))
}

func (b *both) tell(events []shellint.CommandEvent) {
	for _, e := range events {
		e.Line = strings.ToValidUTF8(e.Line, "\uFFFD") // as a state has it
		b.found.events = append(b.found.events, e)
	}
}

// again continues in another process, with the state that this one left as JSON, if the
// scanner is at rest.
func (b *both) again(t *testing.T) {
	t.Helper()
	if !b.scanner.AtRest() {
		return
	}
	data := must.Get(json.Marshal(b.tracker.State()))(t)
	var s shellint.TrackerState
	must.Do(t, json.Unmarshal(data, &s))
	b.scanner = shellint.NewScannerAt(restOptions, b.scanner.Offset())
	b.tracker.Restore(s)
}

// A scanner and a tracker that were saved at rest and restored elsewhere find the same as
// the old ones would have.
func TestGoOnElsewhere(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	pieces := append([]string{"\x1b]633;A;n\a", "\x1b]633;B;n\a", "\x1b]633;E;make all;n\a", "\x1b]633;C;n\a", "\x1b]633;D;3;n\a", "\x1b]633;D;n\a",
		"\x1b]133;A;aid=1\a", "\x1b]133;C;aid=1\a", "\x1b]133;D;0;aid=1\a", "\x1b]633;A\a", "\x1b]633;C\a", "\x1b]633;D;1\a", "output\r\n"}, hostile...)
	anew := 0
	for range 3000 {
		one, many := &both{scanner: shellint.NewScanner(restOptions)}, &both{scanner: shellint.NewScanner(restOptions)}
		one.tracker.Unsigned, many.tracker.Unsigned = true, true
		var stream strings.Builder
		for range 1 + random.IntN(25) {
			p := pieces[random.IntN(len(pieces))]
			stream.WriteString(p)
			one.feed(p)
			many.feed(p)
			if many.scanner.AtRest() {
				anew++
			}
			many.again(t)
		}
		for _, b := range []*both{one, many} {
			var r shellint.Result
			b.scanner.Close(&r)
			b.take(&r)
			b.tell(b.tracker.Close(b.scanner.Offset(), shellint.Exit{Code: 1, Known: true}))
		}
		if diff := cmp.Diff(one.found, many.found, cmp.AllowUnexported(finding{})); diff != "" {
			t.Fatalf("%q (-one +many):\n%s", stream.String(), diff)
		}
		if a, b := one.tracker.State(), many.tracker.State(); !cmp.Equal(a, b) {
			t.Fatalf("%q: state %+v, %+v", stream.String(), a, b)
		}
	}
	if anew < 10_000 {
		t.Errorf("only %d times at rest", anew)
	}
}

// A state is small, however much was typed or printed.
func TestStateIsBounded(t *testing.T) {
	b := &both{scanner: shellint.NewScanner(restOptions)}
	long := strings.Repeat("x", 1<<20)
	b.feed("\x1b]633;E;" + long[:500_000] + ";n\a\x1b]633;C;n\aout\x1b]633;D;0;n\a\x1b]633;E;" + long[:500_000] + ";n\a\x1b]133;C;aid=" + long[:500_000] + "\a")
	b.tracker.Input([]byte("secret"))
	data, err := json.Marshal(b.tracker.State())
	if err != nil || len(data) > 16<<10 || strings.Contains(string(data), "secret") {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
