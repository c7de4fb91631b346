package term

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"tether/agent/output"
	"tether/internal/testkit"
	"tether/record/recordtest"
)

// contractLog is a terminal's log as package recordtest sees it.
type contractLog struct{ t *Terminal }

// TestContract checks what readers get while text, marks and gaps are added and old text
// is dropped.
func TestContract(t *testing.T) {
	recordtest.Check(t, func(*testing.T) recordtest.Log {
		p := NewPool(Options{LogBytes: minLogBytes})
		return contractLog{p.newTerminal(User, Spec{Size: Size{Cols: 80, Rows: 24}, Cwd: "/"}, testkit.NewChild())}
	})
}

func (l contractLog) Append(text string) { l.t.take([]byte(text)) }

func (l contractLog) Mark(n int) {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.t.putMarkLocked(output.Mark{Kind: output.MarkTitle, Off: l.t.log.Texted(), Text: strconv.Itoa(n)})
}

// missed is a gap in the source.
type missed struct {
	error
	from, to int64
}

func (m missed) Gap() (from, to int64) { return m.from, m.to }

func (l contractLog) Miss(n int64) (shown string) {
	end := l.t.log.End()
	l.t.gap(missed{errors.New("missing"), end, end + n})
	return ""
}

func (l contractLog) Shrink() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	log := l.t.log
	log.Trim((log.Start() + log.Texted()) / 2)
}

func (l contractLog) Clear() {
	_, _ = l.handle().ForgetPast(context.Background(), l.End())
}

func (l contractLog) Start() int64 { return l.t.log.TextAt(l.t.log.Start()) }

func (l contractLog) End() int64 { return l.t.log.TextAt(l.t.log.Texted()) }

func (l contractLog) handle() Handle { return Handle{l.t, User, false} }

func (l contractLog) Open(at int64) recordtest.Reader {
	r, err := l.handle().Reader(ReaderOptions{View: output.ViewText})
	if err != nil {
		panic(err)
	}
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
	case ev.Mark.Kind != output.MarkTitle:
		return c.Next(size)
	}
	n, _ := strconv.Atoi(ev.Mark.Text)
	return recordtest.Event{Mark: n}, true
}

func (c contractReader) Close() { c.r.Close() }
