package adopt

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tether/internal/change"
)

// Bounds of what waits because a reader's terminal does not take it, in bytes. What is
// more is dropped and becomes a gap.
const (
	maxWaiting    = 64 << 20  // of one pane: some seconds of a flood
	maxWaitingAll = 256 << 20 // of all panes of a server
	pieceSize     = 256 << 10
	eventCost     = 256 // of an event that is no output
)

// view is what one pane prints, and the answers to questions about it, in the order in
// which tmux told them. One goroutine uses it; its client adds events.
type view struct {
	c       *client
	pane    string
	gone    <-chan struct{} // closed when nobody wants the pane any more
	idle    func()          // called before the view waits
	waiting *atomic.Int64   // bytes of all views of a hub

	more  chan struct{} // 1 slot: events has become longer
	mu    sync.Mutex
	queue []event
	size  int  // bytes in queue, see cost
	full  bool // events are dropped until the next reply
}

var (
	errGone   = errors.New("nobody reads the pane any more")
	errFailed = errors.New("tmux refused a command")
)

// add adds an event; the view gets a copy of output. full says that from now on events
// are dropped, until the next reply: the pane is to be paused.
func (v *view) add(e event) (full bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := len(v.queue) - 1
	switch {
	case e.kind == kindReply || e.kind == kindFailed: // its view waits for it
		v.full = false
		v.queue = append(v.queue, e)
	case v.full:
		return false
	case v.size+len(e.data) > maxWaiting || v.waiting.Load() > maxWaitingAll:
		v.full, full = true, true
		v.queue = append(v.queue, event{kind: kindPause, pane: v.pane})
	case e.kind != kindOutput:
		v.queue = append(v.queue, e)
	case last >= 0 && v.queue[last].kind == kindOutput && len(v.queue[last].data) < pieceSize:
		v.queue[last].data = append(v.queue[last].data, e.data...)
		v.countLocked(len(e.data))
	default:
		e.data = bytes.Clone(e.data)
		v.queue = append(v.queue, e)
	}
	if n := len(v.queue) - 1; n > last {
		v.countLocked(cost(v.queue[n]))
	}
	change.Wake(v.more)
	return full
}

// cost is what an event counts.
func cost(e event) int {
	if e.kind == kindOutput {
		return len(e.data)
	}
	return len(e.data) + eventCost
}

func (v *view) countLocked(n int) {
	v.size += n
	v.waiting.Add(int64(n))
}

// take returns the next event if there is one.
func (v *view) take() (e event, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.queue) == 0 {
		return event{}, false
	}
	e, v.queue = v.queue[0], v.queue[1:]
	v.countLocked(-cost(e))
	return e, true
}

// next returns the next event. It fails when the client or the view has ended.
func (v *view) next() (event, error) {
	e, _, err := v.within(nil)
	return e, err
}

// within is next that waits for no longer than late.
func (v *view) within(late <-chan time.Time) (e event, ok bool, err error) {
	for ended := false; ; {
		if e, ok := v.take(); ok || ended {
			if !ok {
				return event{}, false, v.c.err
			}
			return e, true, nil
		}
		v.idle()
		select {
		case <-v.more:
		case <-late:
			return event{}, false, nil
		case <-v.gone:
			return event{}, false, errGone
		case <-v.c.ended:
			ended = true
		}
	}
}

// answer is a reply. mixed says that other panes have printed meanwhile: it may then
// stand behind output of this pane that is newer. A line waits for all panes' older
// output, but that of one pane does not wait for a line (control.c of tmux).
type answer struct {
	parts []part
	mixed bool
}

// ask returns the output of each of the commands, and gives earlier events to before.
func (v *view) ask(before func(event), commands ...string) (answer, error) {
	select {
	case v.c.asking <- struct{}{}:
	case <-v.c.ended:
		return answer{}, v.c.err
	case <-v.gone:
		return answer{}, errGone
	}
	token := rand.Text()
	v.c.mu.Lock()
	v.c.parser.expect(token)
	v.c.asker, v.c.mixed = v, false
	v.c.mu.Unlock()
	if err := v.c.send(ask(token, commands...)); err != nil {
		return answer{}, err // the client has ended, and with it the other questions
	}
	for {
		e, err := v.next()
		if err != nil {
			return answer{}, err
		}
		switch e.kind {
		case kindReply:
			return answer{e.parts, e.mixed}, nil
		case kindFailed:
			return answer{}, errFailed
		default:
			before(e)
		}
	}
}

// typeKeys sends what is typed to the pane. It blocks while tmux does not read.
func (v *view) typeKeys(p []byte) error {
	var b bytes.Buffer
	for len(p) > 0 {
		n := min(len(p), maxKeys)
		fmt.Fprintf(&b, "send-keys -t '%s' -H", v.pane)
		for _, k := range p[:n] {
			fmt.Fprintf(&b, " %02x", k)
		}
		b.WriteByte('\n')
		p = p[n:]
	}
	return v.c.send(b.String())
}

// maxKeys bounds the keys of one command.
const maxKeys = 256
