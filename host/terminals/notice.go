package terminals

import (
	"strconv"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// The kinds of what the owner of a terminal is told about it besides acknowledgements,
// the most urgent first.
const (
	noticeCount    = iota // how many watch it
	noticeWatchers        // who may watch it, and who does
	noticeKinds
)

// notices has something for each kind of notice.
type notices[T any] [noticeKinds]T

// noticeOf makes the messages: nil if the connection knows it already. It is never
// changed.
var noticeOf = notices[func(*Terminal, *Link) []byte]{(*Terminal).countNotice, (*Terminal).watchersNotice}

// owe lets the owner of t be told. The message is made when it can be sent, so there
// is at most one of each kind, never a queue.
func (t *Terminal) owe(kind int) {
	if c := t.Bound(); c != nil && t.due[kind] != c {
		t.due[kind] = c
		c.due[kind] = append(c.due[kind], t)
		c.Wake()
	}
}

// NextNotice returns this connection's next notice, or nil.
func (c *Link) NextNotice() []byte {
	for kind, message := range noticeOf {
		for len(c.due[kind]) > 0 {
			t := c.due[kind][0]
			c.due[kind] = c.due[kind][1:]
			if t.due[kind] != c {
				continue
			}
			t.due[kind] = nil
			if t.Bound() != c {
				continue
			}
			if msg := message(t, c); msg != nil {
				return msg
			}
		}
	}
	return nil
}

// appendObservers appends the notification that tells an owner the number of observers.
func appendObservers(dst []byte, channel string, count int) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"`+ahp.MethodObservers+`","params":{"channel":`...)
	dst = jsonspan.AppendQuoteString(dst, channel)
	dst = append(dst, `,"count":`...)
	return append(strconv.AppendInt(dst, int64(count), 10), `}}`...)
}

// More returns how many notices may wait.
func (c *Link) More() int { return len(c.due[noticeCount]) + len(c.due[noticeWatchers]) }
