package verdict_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"tether/agent/verdict"
	"tether/internal/testkit/must"
	"tether/problems"
)

// text yields output in pieces of that many bytes.
func text(output string, size int) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for at := 0; at < len(output); at += size {
			if !yield(int64(at), []byte(output[at:min(at+size, len(output))])) {
				return
			}
		}
	}
}

// side is a run with the problems that the known tools' matchers find in it.
func side(dir, command, output string) verdict.Side {
	t := problems.NewTracker(problems.Builtin(), 0)
	t.Begin(command, dir)
	t.Write(0, []byte(output))
	t.End()
	return verdict.Side{Text: text(output, 7), Dir: dir, Problems: t.Problems(0)}
}

func texts(lines []verdict.Line) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return strings.Join(all, "\n")
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, before, now  string
		added, removed     string
		fresh, gone, equal int
	}{
		{"noise alone", "10:00:01 start pid 12\r\n\x1b[32mok\x1b[0m in 12ms\r\n", "11:12:13 start pid 4711\r\nok in 1.2s\r\n", "", "", 0, 0, 0},
		{"a new error", "main.c:5:3: warning: unused variable 'x' [-Wunused-variable]\nok\n",
			"main.c:6:3: warning: unused variable 'x' [-Wunused-variable]\nmain.c:9:1: error: expected ';' before '}' token\n", "main.c:9:1: error: expected ';' before '}' token", "ok", 1, 0, 1},
		{"the same twice", "a.c:1:1: error: bad x\n", "a.c:1:1: error: bad x\na.c:7:1: error: bad x\n", "", "", 1, 0, 1},
		{"mended", "a.c:1:1: error: bad x\n", "done\n", "done", "a.c:1:1: error: bad x", 0, 1, 0},
		{"another order", "ok a\nok b\nok c\n", "ok c\nok a\nok b\n", "", "", 0, 0, 0},
		{"in order, each once", "", "c\nb\nc\na\n", "c\nb\na", "", 0, 0, 0},
		{"no end of the last line", "x", "x\ny", "y", "", 0, 0, 0},
		{"a progress bar", "\r 5%\r 50%\r\x1b[Kdone\n", "\r 9%\r\x1b[Kdone\n", "", "", 0, 0, 0},
		{"nothing", "", "", "", "", 0, 0, 0},
		{"binary", "\x00\x01\xff\xfe", "\x00\x01\xff\xfe\ntext\n", "text", "", 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := must.Get(verdict.Compare(t.Context(), side("/app", "make", c.now), side("/app", "make", c.before)))(t)
			if texts(got.Added) != c.added || texts(got.Removed) != c.removed {
				t.Errorf("added %q, removed %q, want %q and %q", texts(got.Added), texts(got.Removed), c.added, c.removed)
			}
			if got.Problems.New != c.fresh || got.Problems.Gone != c.gone || got.Problems.Same != c.equal {
				t.Errorf("%d new, %d gone, %d same problems: %+v %+v", got.Problems.New, got.Problems.Gone, got.Problems.Same, got.New, got.Gone)
			}
		})
	}
}

// Two work trees of one project have the same lines.
func TestCompareWorktrees(t *testing.T) {
	got := must.Get(verdict.Compare(t.Context(), side("/home/me/fix", "make", "cc -o /home/me/fix/a\n/home/me/fix/a.c:1:2: error: x\n"),
		side("/home/me/app", "make", "cc -o /home/me/app/a\n/home/me/app/a.c:1:2: error: x\n")))(t)
	if len(got.Added)+len(got.Removed)+got.Problems.New+got.Problems.Gone > 0 || got.Problems.Same != 1 {
		t.Errorf("they differ: %+v", got)
	}
}

// Lines on both sides of a gap are not joined, and offsets are those of the text.
func TestCompareGap(t *testing.T) {
	pieces := func(yield func(int64, []byte) bool) {
		_ = yield(100, []byte("one\ntw")) && yield(1000, []byte("ree\nfour\n"))
	}
	got := must.Get(verdict.Compare(t.Context(), verdict.Side{Text: pieces}, side("", "", "one\n")))(t)
	if fmt.Sprint(got.Added) != "[{104 tw 1} {1000 ree 1} {1004 four 1}]" {
		t.Errorf("added %v", got.Added)
	}
}

// Of much output a bounded number of lines is remembered, and what is shown has bounds.
func TestCompareMuch(t *testing.T) {
	flood := func(n int, of string) iter.Seq2[int64, []byte] {
		return func(yield func(int64, []byte) bool) {
			at := int64(0)
			for i := range n {
				p := fmt.Appendf(nil, "%s%d\n", of, i)
				if !yield(at, p) {
					return
				}
				at += int64(len(p))
			}
		}
	}
	got := must.Get(verdict.CompareSome(t.Context(), verdict.Side{Text: flood(1200, "new ")}, verdict.Side{Text: flood(300, "old ")}, 1000))(t)
	if len(got.Added) != 200 || len(got.Removed) != 200 || got.Lines != (verdict.LineCounts{Added: 1000, Removed: 300}) || !got.Partial {
		t.Errorf("%d and %d of %+v, partial %v", len(got.Added), len(got.Removed), got.Lines, got.Partial)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := verdict.Compare(ctx, verdict.Side{Text: flood(1_000_000_000, "")}, verdict.Side{Text: flood(1, "")}); !errors.Is(err, context.Canceled) {
		t.Errorf("a comparison whose context has ended: %v", err)
	}
}
