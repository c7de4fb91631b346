package history_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent/history"
	"tether/internal/plain"
	"tether/internal/testkit/must"
)

// terminal begins the history of a terminal.
func terminal(t testing.TB, h *history.History, id string, at time.Time) *history.Writer {
	t.Helper()
	return must.Get(h.Terminal(history.Run{ID: id, Terminal: id, Name: "name-" + id, Line: "make", Dir: "/src", Started: at, End: -1}))(t)
}

func ended(t testing.TB, w *history.Writer, at time.Time) {
	t.Helper()
	r := w.Run()
	r.Ended, r.End = at, w.End()
	must.Do(t, w.Finish(r))
}

func opened(t testing.TB) *history.History {
	t.Helper()
	h := must.Get(history.Open(history.Options{Dir: filepath.Join(t.TempDir(), "history"), Keep: 24 * time.Hour, MaxBytes: 4 << 30}))(t)
	t.Cleanup(func() { h.Close() })
	return h
}

func expression(t testing.TB, pattern string) *history.Expression {
	t.Helper()
	return must.Get(history.Compile(pattern, false, false))(t)
}

func searched(t testing.TB, h *history.History, s history.Search) (hits []history.Hit, end history.Searched) {
	t.Helper()
	end = must.Get(h.Search(t.Context(), s, func(x history.Hit) bool {
		hits = append(hits, x)
		return true
	}))(t)
	return hits, end
}

// plainLines are the lines of an output as a person sees them.
func plainLines(output []byte) (all []string) {
	var l plain.Lines
	r := plain.Renderer{Tabs: true}
	l.Write(0, output, func(_, _ int64, raw []byte) { all = append(all, string(r.Text(raw))) })
	if rest := string(r.Text(l.Part)); rest != "" {
		all = append(all, rest)
	}
	return all
}

// visible are all of an output, or some stretches of it with gaps between.
func visible(rnd *rand.Rand, length int) (all []history.Span) {
	if rnd.IntN(2) == 0 {
		return []history.Span{{From: 0, To: int64(length)}}
	}
	for at := rnd.IntN(30); at < length; at += 1 + rnd.IntN(30) {
		end := min(at+1+rnd.IntN(length), length)
		all = append(all, history.Span{From: int64(at), To: int64(end)})
		at = end
	}
	return all
}

// A search finds the lines that a person would, however the output was cut into frames
// and whatever of it may be seen, newest first, with the lines around them.
func TestSearchFindsWhatIsSeen(t *testing.T) {
	parts := []string{"error in a\r\n", "\x1b[31mer\x1b[0mror\n", "10%\r100%\r\x1b[Kerror done\r\n", "warn", "ing: x\n", "x\x1b[2Aerror\n", "\n", "half ", "ERROR\n", "caf\u00e9 error\n",
		"nothing\n", "\u202eerr\u202cor hidden\n", "tab\terror\n", strings.Repeat("long ", 50) + "error\n", "e", "r", "r", "o", "r", "\r\n"}
	rnd := rand.New(rand.NewPCG(7, 8))
	for round := range 30 {
		h := opened(t)
		h.SmallUnits(1 + rnd.IntN(300))
		var output []byte
		at := time.Now().Add(-time.Hour)
		w := terminal(t, h, "pty-a", at)
		for range rnd.IntN(100) {
			p := []byte(parts[rnd.IntN(len(parts))])
			output = append(output, p...)
			at = at.Add(time.Second)
			must.Do(t, w.Append(p, at))
			if rnd.IntN(3) == 0 {
				must.Do(t, h.Sync(t.Context()))
			}
		}
		if rnd.IntN(2) == 0 {
			ended(t, w, at)
		}
		for _, pattern := range []string{"error", "(?i)error", `e.{3}r`, "warning", `^\S+$`, "error$", "rare"} {
			re := regexp.MustCompile(pattern)
			around := rnd.IntN(3)
			var want, got []string
			spans := visible(rnd, len(output))
			for _, s := range slices.Backward(spans) {
				lines := plainLines(output[s.From:s.To])
				for i, line := range slices.Backward(lines) {
					if re.MatchString(line) {
						want = append(want, fmt.Sprintf("%q %q %q", lines[max(0, i-around):i], line, lines[i+1:min(len(lines), i+1+around)]))
					}
				}
			}
			hits, end := searched(t, h, history.Search{Expression: expression(t, pattern), Context: around, See: func(history.Run) []history.Span { return spans }})
			for _, x := range hits {
				got = append(got, fmt.Sprintf("%q %q %q", x.Before, x.Line, x.After))
				if !re.MatchString(x.Line[x.Match[0]:x.Match[1]]) && !strings.ContainsAny(pattern, "^$") {
					t.Errorf("%s matches %q at %d", pattern, x.Line, x.Match)
				}
				in := slices.IndexFunc(spans, func(s history.Span) bool { return x.Offset < s.To })
				if line := plainLines(output[x.Offset:spans[in].To]); !strings.Contains(strings.Join(line[:min(4, len(line))], "\n"), x.Line) {
					t.Errorf("%q is not at %d", x.Line, x.Offset)
				}
			}
			if !slices.Equal(got, want) || end.Hits != len(hits) || end.More || !end.Back.IsZero() {
				t.Fatalf("round %d: %s in %q\ngot  %s\nwant %s\n%+v", round, pattern, output, strings.Join(got, "\n     "), strings.Join(want, "\n     "), end)
			}
		}
	}
}

// Hits of several terminals come in the order of their time, each with the command that
// printed it, and no text is searched or shown that the asker may not see.
func TestSearchOrderAndRights(t *testing.T) {
	h := opened(t)
	at := time.Now().Add(-time.Hour)
	a, b := terminal(t, h, "pty-a", at), terminal(t, h, "pty-b", at)
	for i := range 6 {
		at = at.Add(time.Minute)
		w := []*history.Writer{a, b}[i%2]
		must.Do(t, w.Append(fmt.Appendf(nil, "before %d\nhit %d\nafter %d\n", i, i, i), at))
		must.Do(t, h.Sync(t.Context()))
	}
	must.Do(t, h.Put(history.Run{ID: "pty-a.1", Terminal: "pty-a", Command: 1, Line: "go test", Dir: "/src/x", Started: at, Ended: at, Start: 23, End: 46}))
	hits, _ := searched(t, h, history.Search{Expression: expression(t, "hit")})
	var got []string
	for _, x := range hits {
		got = append(got, x.Line+" "+x.Run.ID)
	}
	if want := "hit 5 pty-b, hit 4 pty-a, hit 3 pty-b, hit 2 pty-a.1, hit 1 pty-b, hit 0 pty-a"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	for _, c := range []struct {
		name string
		s    history.Search
		want string
	}{
		{"a name", history.Search{Runs: history.Query{Name: "name-pty-b"}}, "hit 5, hit 3, hit 1"},
		{"a directory", history.Search{Runs: history.Query{Dir: "/src/x"}}, "hit 2"},
		{"the newest", history.Search{Most: 2}, "hit 5, hit 4"},
		{"a time", history.Search{Runs: history.Query{Since: at.Add(-90 * time.Second)}}, "hit 5, hit 4"},
		{"rights", history.Search{Context: 20, See: func(r history.Run) []history.Span {
			if r.Terminal == "pty-b" {
				return nil
			}
			return []history.Span{{From: 9, To: 14}, {From: 25, To: 40}}
		}}, "hit 2 [fore 2] [af], hit 0 [] []"},
	} {
		c.s.Expression = expression(t, "hit")
		var got []string
		hits, end := searched(t, h, c.s)
		for _, x := range hits {
			line := x.Line
			if c.s.Context > 0 {
				line += fmt.Sprint(" ", x.Before, " ", x.After)
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != c.want || end.More != (c.s.Most > 0) {
			t.Errorf("%s: got %q, want %s (%+v)", c.name, got, c.want, end)
		}
	}
}

// A search whose time is over says how far it came. Its hits are the newest ones.
func TestSearchTimesOut(t *testing.T) {
	h := opened(t)
	at := time.Now().Add(-time.Hour)
	w := terminal(t, h, "pty-a", at)
	for range 10 {
		at = at.Add(time.Minute)
		must.Do(t, w.Append(append(bytes.Repeat([]byte("an ordinary line\n"), 7000), "a hit\n"...), at))
	}
	must.Do(t, h.Sync(t.Context()))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	over := &ending{Context: ctx, done: make(chan struct{})}
	end, err := h.Search(over, history.Search{Expression: expression(t, "hit"), Most: 1000}, func(x history.Hit) bool {
		over.once.Do(func() { close(over.done) })
		return true
	})
	if err != nil || end.Hits == 0 || end.Hits == 10 || end.Back.IsZero() || end.Back.After(at) || end.More {
		t.Errorf("got %+v, %v", end, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if end, err := h.Search(ctx, history.Search{Expression: expression(t, "hit")}, nil); err == nil {
		t.Errorf("a search that was called off: %+v", end)
	}
}

// ending is a context whose deadline passes when the test says so.
type ending struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func (e *ending) Done() <-chan struct{} { return e.done }

func (e *ending) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestCompileRefuses(t *testing.T) {
	for pattern, want := range map[string]string{"": "is empty", "a(": "missing closing )", strings.Repeat("x", 1001): "1001 bytes, at most 1000", `(?=x)`: "invalid or unsupported Perl syntax"} {
		if _, err := history.Compile(pattern, false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", pattern, err, want)
		}
	}
	must.Get(history.Compile("a(", true, true))(t)
}

// benchText is like the output of builds and servers.
func benchText(r *rand.Rand, n int, colours bool) string {
	var b strings.Builder
	words := []string{"Compiling", "serde", "tokio", "warning:", "unused", "variable", "error", "src/main.rs", "ok", "test", "passed", "GET", "/api/v1/users", "200", "in", "ms", "INFO", "request", "served", "✓"}
	for b.Len() < n {
		fmt.Fprintf(&b, "2026-11-%02d %02d:%02d:%02d.%03d ", r.IntN(30), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
		for range 4 + r.IntN(8) {
			w := words[r.IntN(len(words))]
			if colours && r.IntN(4) == 0 {
				w = fmt.Sprintf("\x1b[%dm%s\x1b[0m", 31+r.IntN(6), w)
			}
			b.WriteString(w + " ")
			if r.IntN(6) == 0 {
				fmt.Fprintf(&b, "%x ", r.Uint32())
			}
		}
		b.WriteString("\r\n")
	}
	return b.String()[:n]
}

// heapPeak returns what tells by how many MiB the heap has grown at most since then.
func heapPeak(b *testing.B) func() float64 {
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	runtime.GC()
	before, end, peak := inUse(), make(chan struct{}), make(chan uint64)
	go func() {
		most := before
		for {
			select {
			case <-end:
				peak <- most
				return
			case <-time.After(50 * time.Millisecond):
				most = max(most, inUse())
			}
		}
	}()
	return func() float64 {
		close(end)
		return float64(<-peak-before) / (1 << 20)
	}
}

// BenchmarkSearch searches 256 MiB of text in 64 runs.
func BenchmarkSearch(b *testing.B) {
	for _, colours := range []bool{false, true} {
		h := opened(b)
		r := rand.New(rand.NewPCG(1, 2))
		var texts []string
		for range 8 {
			texts = append(texts, benchText(r, 4<<20, colours))
		}
		for len(texts) < 64 {
			texts = append(texts, texts[len(texts)%8])
		}
		texts[20] += "panic: assignment to entry in nil map\r\n"
		at := time.Now().Add(-time.Hour)
		for i, text := range texts {
			w := terminal(b, h, fmt.Sprintf("pty-%d", i), at)
			for piece := range slices.Chunk([]byte(text), 20_000) {
				at = at.Add(time.Millisecond)
				must.Do(b, w.Append(piece, at))
			}
			ended(b, w, at)
		}
		must.Do(b, h.Sync(b.Context()))
		texts = nil
		for name, pattern := range map[string]string{
			"rare": "entry in nil map", "absent": "connection refused", "near": "warning: unused warning: unused tokio serde error INFO GET",
			"regexp": `warning: \w+ variable error (tokio|serde) passed passed \d{9}`, "words": `(?i)panic: [a-z]+`, "class": `[0-9]{14}`, "greedy": `[^ ]+@[^ ]+$`, "dots": `.*x.*y.*z.*w`, "common": `error`,
		} {
			b.Run(fmt.Sprint(name, "/", colours), func(b *testing.B) {
				b.SetBytes(256 << 20)
				e := expression(b, pattern)
				var first time.Duration
				peak := heapPeak(b)
				for b.Loop() {
					start := time.Now()
					first = 0
					_ = must.Get(h.Search(b.Context(), history.Search{Expression: e, Context: 2}, func(history.Hit) bool {
						if first == 0 {
							first = time.Since(start)
						}
						return true
					}))(b)
				}
				b.ReportMetric(float64(first.Milliseconds()), "ms-first")
				b.ReportMetric(peak(), "MiB-more")
			})
		}
	}
}
