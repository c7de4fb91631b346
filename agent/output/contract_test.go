package output

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"tether/record/recordtest"
	"tether/shellint"
)

// nobody is an Owner that nothing follows for. Bugs are added to it.
type nobody struct {
	mu   sync.Mutex
	bugs []Bug
}

func (*nobody) Appended(*shellint.Result, time.Time) {}
func (*nobody) Marked(*Mark)                         {}
func (*nobody) Commands()                            {}
func (*nobody) Keep()                                {}
func (*nobody) Restored()                            {}
func (*nobody) Moved()                               {}

func (n *nobody) Recovered(bug Bug) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bugs = append(n.bugs, bug)
}

// newLog returns a log of nobody's.
func newLog() (*Log, *nobody) {
	n := &nobody{}
	never := func(string) bool { return false }
	return New(&n.mu, n, Options{Limit: 64 << 10, Size: Size{Cols: 80, Rows: 24}, Cwd: "/", IsName: never, IsHere: never}), n
}

// contractLog is a log as package recordtest sees it.
type contractLog struct{ *Log }

// TestContract checks what readers get while text, marks and gaps are added and old text
// is dropped.
func TestContract(t *testing.T) {
	recordtest.Check(t, func(*testing.T) recordtest.Log {
		l, _ := newLog()
		return contractLog{l}
	})
}

func (l contractLog) Append(text string) { l.Log.Append([]byte(text), time.Now()) }

func (l contractLog) Mark(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark(Mark{Kind: MarkTitle, Off: l.texted, Text: strconv.Itoa(n)})
	l.wake()
}

func (l contractLog) Miss(n int64) (shown string) {
	l.Lose(l.log.End(), l.log.End()+n, time.Now())
	return ""
}

func (l contractLog) Shrink() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim((l.log.Start()+l.texted)/2, l.log.Limit())
}

func (l contractLog) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Log.Clear(l.TextEnd())
}

func (l contractLog) Start() int64 { return l.TextAt(l.Log.Start()) }

func (l contractLog) End() int64 { return l.TextEnd() }

func (l contractLog) Open(at int64) recordtest.Reader {
	r := l.NewReader(ReaderOptions{View: ViewText}, By{})
	r.SeekText(at)
	return contractReader{r}
}

type contractReader struct{ r *Reader }

func (c contractReader) Next(size int) (e recordtest.Event, ok bool) {
	ev, ok, err := c.r.TryNext(make([]byte, size))
	var lag *LaggedError
	switch {
	case errors.As(err, &lag):
		return recordtest.Event{Moved: true, At: lag.At, Lost: lag.Lost}, true
	case err != nil:
		panic(fmt.Sprint("reading: ", err))
	case !ok:
		return e, false
	case ev.Mark == nil:
		return recordtest.Event{Text: string(ev.Data), At: ev.Off}, true
	case ev.Mark.Kind != MarkTitle:
		return c.Next(size)
	}
	n, _ := strconv.Atoi(ev.Mark.Text)
	return recordtest.Event{Mark: n}, true
}

func (c contractReader) Close() { c.r.Close() }
