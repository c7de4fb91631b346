package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// pageList is the list of a page that is sent updates.
type pageList struct {
	h       *host.Host
	version int64
	rows    map[string]json.RawMessage
	whole   int // times that it was sent all
}

// update brings it up to date and returns how many rows it was sent.
func (p *pageList) update(t testing.TB) int {
	t.Helper()
	data, now := p.h.PageUpdate(p.version)
	p.version = max(now, 1)
	var u struct {
		Whole bool
		Rows  []json.RawMessage
		Gone  []string
	}
	must.Do(t, json.Unmarshal(data, &u))
	if u.Whole {
		p.whole++
		p.rows = map[string]json.RawMessage{}
	}
	for _, id := range u.Gone {
		delete(p.rows, id)
	}
	for _, r := range u.Rows {
		var row struct{ ID string }
		must.Do(t, json.Unmarshal(r, &row))
		p.rows[row.ID] = r
	}
	return len(u.Rows)
}

// sorted puts rows into the order of their text: the page has an order of its own.
func sorted(rows iter.Seq[json.RawMessage]) []json.RawMessage {
	return slices.SortedFunc(rows, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
}

// With any changes, and any times of pages' requests, the updates add up to the present
// list.
func TestUpdatesAddUp(t *testing.T) {
	for seed := range testkit.Rounds(t, 2, 200) {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		h := testHost(t, host.Options{})
		pages := []*pageList{{h: h}, {h: h}, {h: h}}
		feeds := map[string]*host.Feed{}
		for step := range 1500 {
			uri := fmt.Sprint("ahp-terminal:/", random.IntN(40))
			switch f := feeds[uri]; {
			case f == nil:
				feeds[uri] = host.NewFeed(h, uri)
			case random.IntN(3) == 0:
				f.Remove()
				delete(feeds, uri)
			case random.IntN(2) == 0:
				f.Act(ahp.TerminalTitleChanged{Title: fmt.Sprint(step)})
			default:
				f.Text("no news for the list")
			}
			for n, p := range pages[:2] {
				if random.IntN(1+20*n) == 0 {
					p.update(t)
				}
			}
		}
		var want []json.RawMessage
		must.Do(t, json.Unmarshal(h.PageRows(), &want))
		for n, p := range pages {
			p.update(t)
			if diff := cmp.Diff(sorted(slices.Values(want)), sorted(maps.Values(p.rows))); diff != "" {
				t.Fatalf("seed %d, page %d (-want +got):\n%s", seed, n, diff)
			}
			if again := p.update(t); again != 0 {
				t.Errorf("%d rows without news", again)
			}
		}
	}
}

// With 5,000 terminals, a change is one row, and a page that was away for long is sent
// the list.
func TestUpdatesAreSmall(t *testing.T) {
	h, feeds := hostWithFeeds(t, 5000)
	p := &pageList{h: h}
	if n := p.update(t); n != len(feeds) || p.whole != 1 {
		t.Errorf("the first update has %d rows of %d", n, len(feeds))
	}
	feeds[17].Act(ahp.TerminalTitleChanged{Title: "new"})
	feeds[17].Text("much text")
	if n := p.update(t); n != 1 || p.whole != 1 {
		t.Errorf("after a new title: %d rows, %d times all", n, p.whole)
	}
	for _, f := range feeds[1000:] {
		f.Remove()
	}
	if n := p.update(t); n != 1000 || p.whole != 2 || len(p.rows) != 1000 {
		t.Errorf("after most have gone: %d rows, %d times all, %d are listed", n, p.whole, len(p.rows))
	}
}

func hostWithFeeds(t testing.TB, n int) (*host.Host, []*host.Feed) {
	h := testHost(t, host.Options{})
	feeds := make([]*host.Feed, n)
	for i := range feeds {
		feeds[i] = host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i))
	}
	return h, feeds
}

// BenchmarkPageUpdate is the cost of a change for each page that shows 5,000 terminals.
func BenchmarkPageUpdate(b *testing.B) {
	h, feeds := hostWithFeeds(b, 5000)
	_, version := h.PageUpdate(0)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		feeds[n%len(feeds)].Act(ahp.TerminalTitleChanged{Title: fmt.Sprint("title ", n)})
		var data []byte
		data, version = h.PageUpdate(version)
		b.SetBytes(int64(len(data)))
	}
}

// BenchmarkPageWhole is the cost of sending the whole list, as before each change was
// sent alone.
func BenchmarkPageWhole(b *testing.B) {
	h, _ := hostWithFeeds(b, 5000)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(h.PageRows())))
	}
}

// A row is sent again with each change in it, so it has only the beginning of a long
// command line.
func TestRowsOfLongCommandLines(t *testing.T) {
	h := testHost(t, host.Options{})
	f := host.NewFeed(h, "ahp-terminal:/a")
	line := "x" + strings.Repeat("ä", 32<<10-1)
	f.Act(ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: line})
	data, _ := h.PageUpdate(0)
	var u struct{ Rows []struct{ Running string } }
	must.Do(t, json.Unmarshal(data, &u))
	if got := u.Rows[0].Running; len(data) > 8<<10 || len(got) < 1<<10 || !strings.HasPrefix(line, got) {
		t.Errorf("it has %d bytes, %d of the line", len(data), len(got))
	}
}
