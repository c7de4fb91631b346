package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// logText is what a build prints, about.
func logText(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\x1b[32m✓\x1b[0m src/components/widget%d.tsx (%d tests) %dms\n", i%977, i%13, i*7919%1000)
		if i%7 == 0 {
			fmt.Fprintf(&b, "[%02d:%02d:%02d] transformed %d modules, chunk %08x emitted\n", i/3600%24, i/60%60, i%60, i, i*2654435761)
		}
	}
	return b.Bytes()[:n]
}

// A terminal that prints a line a second takes little: its frames are joined.
func TestOneLineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		h := must.Get(Open(Options{Dir: "x", Keep: 100 * time.Hour, FS: m}))(t)
		w := must.Get(h.Terminal(terminal("pty-a")))(t)
		seconds := testkit.Load(3*3600, 5000)
		for i := range seconds {
			line := fmt.Appendf(nil, "%s GET /api/items/%d 200 %dms\n", time.Now().Format(time.DateTime), i*7919%1000, i*31%97)
			must.Do(t, w.Append(line, time.Now()))
			must.Do(t, h.Sync(t.Context()))
			time.Sleep(time.Second)
		}
		r := w.Run()
		r.Ended = time.Now()
		must.Do(t, w.Finish(r))
		must.Do(t, h.Sync(t.Context()))
		disk, text := m.size(), w.End()
		t.Logf("%d s: %d bytes of text, %d on disk, %d files", seconds, text, disk, len(must.Get(m.List("pty-a"))(t)))
		if disk > text/2 {
			t.Errorf("%d bytes of text take %d on disk", text, disk)
		}
		must.Do(t, h.Close())
	})
}

func BenchmarkAppend(b *testing.B) {
	h := must.Get(Open(Options{Dir: filepath.Join(b.TempDir(), "h"), Keep: time.Hour, MaxBytes: 1 << 30}))(b)
	w := must.Get(h.Terminal(terminal("pty-a")))(b)
	text := logText(1 << 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for at := 0; at < len(text); at += 32 << 10 {
			must.Do(b, w.Append(text[at:at+32<<10], time.Now()))
		}
	}
	b.ReportMetric(float64(h.size())/float64(w.End()), "disk/text")
	must.Do(b, h.Close())
}

// BenchmarkList lists 100,000 runs.
func BenchmarkList(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "h")
	must.Do(b, os.MkdirAll(dir, 0o700))
	list := manyRuns(b, 100_000)
	must.Do(b, os.WriteFile(filepath.Join(dir, listName), list, 0o600))
	h := must.Get(Open(Options{Dir: dir, Keep: time.Hour}))(b)
	for name, q := range map[string]Query{"all": {}, "none": {Name: "no such"}, "dir": {Dir: "/home/you"}} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				for range h.List(q) {
					n++
				}
			}
			b.ReportMetric(float64(len(list))/1e6, "MB")
		})
	}
	b.Run("newest50", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for range h.List(Query{}) {
				if n++; n == 50 {
					break
				}
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			_, _ = h.Run("pty-none")
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			must.Get(Open(Options{Dir: dir, Keep: time.Hour}))(b)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1e6, "heapMB")
	})
}

func BenchmarkRecord(b *testing.B) {
	r := Run{ID: "pty-abcdefgh.3", Terminal: "pty-abcdefgh", Command: 3, Line: "go test ./internal/thing -run 'TestSomething'", Dir: "/home/me/src/project", Started: time.Now(), Ended: time.Now(), End: 1000}
	line := must.Get(r.encode())(b)
	for b.Loop() {
		must.Get(decodeRun(line))(b)
	}
}
