package terminals

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
)

// A node that follows a terminal gets the entries of the terminal's log from the owner
// node, from its own position on. It requests each piece: if NATS loses a message, the
// request is repeated and no byte is lost, and a node that does not request slows the
// machine down like a slow observer.

// feed is a node that follows a terminal of this one.
type feed struct {
	*channel.Feed
	watching int
	watchers []ahp.Watcher
}

// FeedRequest asks the owner of a terminal for the text after the node's position: after
// an entry of the log, if Number is the terminal's, otherwise after an offset in its
// text.
type FeedRequest struct {
	From     string        `json:"from"` // the node that asks
	URI      string        `json:"uri"`
	Epoch    int64         `json:"epoch"`
	Number   int64         `json:"number,omitempty"`
	Index    int64         `json:"index,omitempty"`
	Offset   int64         `json:"offset"` // in the owner's text, in bytes; -1: the beginning of the retained text
	Most     int           `json:"most"`   // bytes; 0: the node has stopped following the terminal
	Hold     int64         `json:"hold"`   // ms to wait if there is nothing
	Room     int           `json:"-"`      // upper bound of the answer's items, in bytes, at least 64 KiB; 0: none
	Watching int           `json:"watching,omitempty"`
	Watchers []ahp.Watcher `json:"watchers,omitempty"`
}

// FeedAnswer is the answer to a FeedRequest. The next request repeats Number and Index;
// Number is 0 if only a part of the recorded text fitted.
type FeedAnswer struct {
	Number, Index int64
	Items         []byte // see appendItem
}

// The kinds of items.
const (
	itemReset  = 'R' // earlier text is not available; JSON of output.Reset
	itemText   = 'T' // a JSON string
	itemNote   = 'N' // a terminal/data with a line from the host itself
	itemAction = 'A' // another action
	itemState  = 'S' // JSON of feedState: the state after the items before
)

// feedState is the state of a terminal without its text.
type feedState struct {
	Title     string        `json:"title"`
	Cwd       string        `json:"cwd,omitempty"`
	Cols      int64         `json:"cols,omitempty"`
	Rows      int64         `json:"rows,omitempty"`
	Detection bool          `json:"detection,omitempty"`
	Lifecycle ahp.Lifecycle `json:"lifecycle"`
	Exited    time.Time     `json:"exited,omitzero"`
}

func (t *Terminal) feedState() feedState {
	s := t.State
	return feedState{s.Title, s.Cwd, s.Cols, s.Rows, s.SupportsCommandDetection, s.Lifecycle, t.exited}
}

// appendItem appends an item: its kind, the owner's offset behind it, its length, and its
// data.
func appendItem(dst []byte, kind byte, end int64, data []byte) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(end))
	dst = binary.AppendUvarint(dst, uint64(len(data)))
	return append(dst, data...)
}

// nextItem returns the first item and the rest; ok is false if the first item is
// incomplete.
func nextItem(items []byte) (kind byte, end int64, data, rest []byte, ok bool) {
	if len(items) == 0 {
		return 0, 0, nil, nil, false
	}
	kind, items = items[0], items[1:]
	off, n := binary.Uvarint(items)
	if n <= 0 || off > output.MaxPosition {
		return 0, 0, nil, nil, false
	}
	items = items[n:]
	size, n := binary.Uvarint(items)
	if n <= 0 || size > uint64(len(items)-n) {
		return 0, 0, nil, nil, false
	}
	items = items[n:]
	return kind, int64(off), items[:size], items[size:], true
}

// Feed answers a node that follows a terminal. If there is nothing new, it waits until
// there is, for at most the time in the request, or until ctx ends.
func (b *Book) Feed(ctx context.Context, r FeedRequest) (a FeedAnswer, err error) {
	late := time.NewTimer(time.Duration(min(max(r.Hold, 0), 10_000)) * time.Millisecond)
	defer late.Stop()
	for settled := false; ; {
		b.mu.Lock()
		t := b.Known(r.URI)
		if t == nil || t.Mirror() != nil || !t.Remote() || t.Creator.Epoch != r.Epoch || t.Creator.Node != "" {
			b.mu.Unlock()
			return a, ErrNotOwner
		}
		if r.Most <= 0 {
			if f := t.feeds[r.From]; f != nil {
				delete(t.feeds, r.From)
				f.End()
			}
			t.watched()
			b.mu.Unlock()
			return a, nil
		}
		if !settled && t.Out.Pending() { // the answer may have the screen
			b.mu.Unlock()
			settled = true
			t.Settle()
			continue
		}
		t.feed(&r)
		a = t.takeFeed(&r)
		if len(a.Items) > 0 {
			b.mu.Unlock()
			return a, nil
		}
		moved := t.Moved.Next()
		b.mu.Unlock()
		select {
		case <-moved:
		case <-late.C:
			return a, nil
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// feed records a node's request and position.
func (t *Terminal) feed(r *FeedRequest) {
	if t.feeds == nil {
		t.feeds = map[string]*feed{}
	}
	f := t.feeds[r.From]
	if f == nil {
		f = &feed{Feed: t.Channel.NewFeed()}
		t.feeds[r.From] = f
	}
	if r.Number == t.number {
		f.Ask(max(r.Index, 0))
	} else {
		f.Ask(-1)
	}
	watching, watchers := max(r.Watching, 0), r.Watchers[:min(len(r.Watchers), ahp.MaxWatchers)]
	if f.watching != watching || !slices.EqualFunc(f.watchers, watchers, sameWatcher) {
		f.watching, f.watchers = watching, watchers
		t.watched()
	}
}

func sameWatcher(a, b ahp.Watcher) bool {
	return a.Who == b.Who && a.Kind == b.Kind && a.Since.Equal(b.Since)
}

// takeFeed returns the log after the node's position, at most about r.Most bytes.
func (t *Terminal) takeFeed(r *FeedRequest) FeedAnswer {
	a := FeedAnswer{Number: t.number, Index: r.Index}
	entries, ok := t.Channel.Entries(r.Index)
	if r.Number != t.number || !ok {
		return t.takeText(r)
	}
	for i, e := range entries {
		if len(a.Items) > 0 && len(a.Items)+len(e.Msg) > r.Most {
			break
		}
		items := t.appendEntry(a.Items, e)
		if r.Room > 0 && len(items) > r.Room {
			if len(a.Items) == 0 {
				return t.takeText(r) // recorded text can be cut anywhere
			}
			break
		}
		a.Items, a.Index = items, i+1
	}
	return a
}

// appendEntry appends an entry of the log as an item. It leaves out refusals, which
// concern only clients of this node.
func (t *Terminal) appendEntry(dst []byte, e *channel.Entry) []byte {
	if e.Here {
		return dst
	}
	end := t.Out.TextOffset(e.At)
	if e.From != 0 && e.Past == 0 {
		head := len(ahp.AppendData(nil, t.URI, e.Seq, nil, nil)) - len("}}}")
		return appendItem(dst, itemText, end, e.Msg[head:len(e.Msg)-len("}}}")])
	}
	var v struct {
		Action json.RawMessage `json:"action"`
		Reason string          `json:"rejectionReason"`
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(ahp.EnvelopeParams(e.Msg), &v) != nil || v.Reason != "" || json.Unmarshal(v.Action, &kind) != nil {
		return dst
	}
	if kind.Type == ahp.ActionTerminalData {
		return appendItem(dst, itemNote, end, v.Action)
	}
	return appendItem(dst, itemAction, end, v.Action)
}

// takeText is takeFeed for positions that are not in the log: it uses the recorded
// text.
func (t *Terminal) takeText(r *FeedRequest) (a FeedAnswer) {
	start := t.Out.Oldest()
	w := output.Walk{Pos: t.Out.PosOf(max(r.Offset, 0))}
	switch {
	case r.Offset > t.Out.Applied(): // the machine has not sent its earlier output again yet
		return a
	case r.Offset < t.Out.TextOffset(start):
		w.Pos = start
		a.Items = t.appendReset(a.Items, r.Room)
	}
	w.Act = func(action ahp.Action) {
		a.Items = appendItem(a.Items, itemAction, t.Out.TextOffset(w.Pos), ahp.AppendAction(nil, action))
	}
	w.Text = func(quoted []byte) { a.Items = appendItem(a.Items, itemText, t.Out.TextOffset(w.Pos), quoted) }
	w.Room = func(n int) int {
		switch {
		case len(a.Items) > r.Most/2 && len(a.Items)+n > r.Most:
			return 0
		case r.Room > 0:
			return max(0, r.Room-len(a.Items))
		}
		return n
	}
	if v := t.Out.View(math.MaxInt, 0); !v.Walk(&w) {
		return a
	}
	w.Sizes()
	data, _ := json.Marshal(t.feedState()) // has nothing that cannot be encoded
	a.Items = appendItem(a.Items, itemState, t.Out.Applied(), data)
	a.Number, a.Index = t.number, t.Channel.Index()
	return a
}

// appendReset appends an item that says where the recorded text begins, with the
// screen there.
func (t *Terminal) appendReset(dst []byte, room int) []byte {
	reset := t.Out.ResetAt(t.Out.Behind(t.Out.Oldest()))
	data, _ := json.Marshal(reset) // likewise
	if len(data) > ahp.MaxOutputScreen || room > 0 && len(data) > room/2 {
		reset.Screen = t.Out.UnknownScreen()
		data, _ = json.Marshal(reset)
	}
	return appendItem(dst, itemReset, reset.Offset, data)
}

// endFeeds forgets the nodes that follow the terminal.
func (t *Terminal) endFeeds() {
	for _, f := range t.feeds {
		f.End()
	}
	clear(t.feeds)
}

// watchingAtNodes returns the number of the terminal's watchers at other nodes.
func (t *Terminal) watchingAtNodes() (n int) {
	for _, f := range t.feeds {
		n += f.watching
	}
	return n
}
