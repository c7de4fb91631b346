package output

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/internal/testkit/must"
)

// secret is what hosts do not see.
const secret = "c0rrect-h0rse-battery"

// newLent returns a log of a terminal that a host has.
func newLent(t *testing.T) (*Log, *nobody) {
	l, n := newLog()
	rules, _ := must.Get(redact.Compile(redact.Options{}))(t).With([]string{secret})
	n.mu.Lock()
	defer n.mu.Unlock()
	l.SetRules(rules)
	l.SetLent(true)
	return l, n
}

// Ways to break a log.
func breakScanner(l *Log)   { l.scanner = nil }
func breakRedaction(l *Log) { l.mu.Lock(); l.redaction.filter = nil; l.mu.Unlock() }
func breakCuts(l *Log)      { l.mu.Lock(); l.cuts.blocks.Push(nil); l.mu.Unlock() }

// A panic caused by a terminal's output costs that output and what was before it.
func TestABugIsSurvived(t *testing.T) {
	for name, trip := range map[string]func(*Log){"in the scanner": breakScanner, "under the lock": breakRedaction, "where text offsets are from": breakCuts} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, owner := newLent(t)
				readers := []*Reader{l.NewReader(ReaderOptions{View: ViewRaw}, By{}), l.NewReader(ReaderOptions{View: ViewOutward}, By{})}
				l.Append([]byte("before \xff"), time.Now())
				ends := make([]int64, len(readers))
				for i, r := range readers {
					_, ends[i] = readOn(t, r)
				}
				trip(l)
				l.Append([]byte("unlucky output"), time.Now())
				l.Append([]byte("after "+secret), time.Now())
				time.Sleep(time.Second)
				synctest.Wait()
				if bugs := owner.bugs; len(bugs) != 1 || bugs[0].Bytes != len("unlucky output") || !strings.Contains(string(bugs[0].Stack), "Append") || strings.Contains(bugs[0].Kind, "unlucky") {
					t.Fatalf("told of %+v", bugs)
				}
				for i, want := range []string{"after " + secret, "after " + strings.Repeat("*", len(secret))} {
					if got, end := readOn(t, readers[i]); got != want || end <= ends[i] {
						t.Errorf("reader %d sees %q up to %d (before: %d), want %q", i, got, end, ends[i], want)
					}
				}
				if l.Lost() != int64(len("unlucky output")) || l.End() != int64(len("before ?unlucky outputafter "+secret)) {
					t.Errorf("lost %d of %d bytes", l.Lost(), l.End())
				}
			})
		})
	}
}

// The same at the end of the output, and while text is withheld.
func TestABugAtTheEndIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, owner := newLent(t)
		l.Append([]byte("withheld: "+secret[:4]), time.Now()) // it may go on: a timer decides
		breakRedaction(l)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(owner.bugs) != 1 {
			t.Fatalf("told of %+v", owner.bugs)
		}
		l.Append([]byte(" and on"), time.Now())
		time.Sleep(time.Second)
		if got, _ := readOn(t, l.NewReader(ReaderOptions{View: ViewOutward}, By{})); !strings.HasSuffix(got, " and on") {
			t.Errorf("the host sees %q", got)
		}
		breakScanner(l)
		l.Finish(time.Now())
		if len(owner.bugs) != 2 {
			t.Errorf("told of %+v", owner.bugs)
		}
	})
}

// readOn reads available output behind gaps, and returns its end.
func readOn(t *testing.T, r *Reader) (text string, end int64) {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		ev, ok, err := r.TryNext(buf)
		var lagged *LaggedError
		switch {
		case errors.As(err, &lagged):
			text = ""
			continue
		case err != nil && err != io.EOF:
			t.Fatal(err)
		case err != nil || !ok:
			return text, end
		case ev.Mark == nil:
			text, end = text+string(ev.Data), ev.Off+int64(len(ev.Data))
		}
	}
}

// Redaction costs nothing without readers: a minute after the last reader no secrets are
// looked for.
func TestRedactionLivesWithItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, owner := newLent(t)
		lend := func(lent bool) {
			owner.mu.Lock()
			defer owner.mu.Unlock()
			l.SetLent(lent)
		}
		expect := func(want bool, what string) {
			t.Helper()
			owner.mu.Lock()
			defer owner.mu.Unlock()
			if got := l.redaction != nil; got != want {
				t.Errorf("%s, secrets are looked for: %v", what, got)
			}
		}
		time.Sleep(5 * time.Minute)
		expect(true, "a host has the terminal")
		lend(false)
		time.Sleep(2 * time.Minute)
		expect(false, "nobody reads")
		for _, back := range []bool{false, false, true} {
			r := l.NewReader(ReaderOptions{View: ViewOutward, Background: back}, By{})
			time.Sleep(3 * time.Minute)
			expect(true, "somebody reads")
			l.Append([]byte(secret), time.Now())
			r.Close()
			r.Close()
			time.Sleep(50 * time.Second)
			expect(!back, "somebody has read")
		}
		lend(true)
		time.Sleep(5 * time.Minute)
		expect(true, "a host has the terminal again")
		lend(false)
		time.Sleep(2 * time.Minute)
		expect(false, "nobody reads any more")
	})
}
