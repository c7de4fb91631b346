package host

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
var noticeOf = notices[func(*terminal, *conn) []byte]{(*terminal).countNoticeLocked, (*terminal).watchersNoticeLocked}

// oweLocked lets the owner of t be told. The message is made when it can be sent, so
// there is at most one of each kind, never a queue.
func (t *terminal) oweLocked(kind int) {
	if c := t.bound(); c != nil && t.due[kind] != c {
		t.due[kind] = c
		c.due[kind] = append(c.due[kind], t)
		c.Wake()
	}
}

// nextNoticeLocked returns this connection's next notice, or nil.
func (c *conn) nextNoticeLocked() []byte {
	for kind, message := range noticeOf {
		for len(c.due[kind]) > 0 {
			t := c.due[kind][0]
			c.due[kind] = c.due[kind][1:]
			if t.due[kind] != c {
				continue
			}
			t.due[kind] = nil
			if t.bound() != c {
				continue
			}
			if msg := message(t, c); msg != nil {
				return msg
			}
		}
	}
	return nil
}
