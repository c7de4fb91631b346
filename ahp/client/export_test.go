package client

import "tether/ahp"

// History is a history that tests can use.
type History struct{ h history }

func NewHistory(limit int) *History { return &History{history{limit: limit}} }

// Apply applies an action to the content, as terminal.apply does.
func (h *History) Apply(a ahp.Action) {
	switch a := a.(type) {
	case ahp.TerminalData:
		h.h.write([]byte(a.Data))
	case ahp.TerminalCleared:
		h.h.clear()
	case ahp.TerminalCommandExecuted:
		h.h.start(a)
	case ahp.TerminalCommandFinished:
		h.h.finish(a)
	}
}

func (h *History) Load(content []ahp.ContentPart) { h.h.load(content) }

func (h *History) Content() []ahp.ContentPart { return h.h.content() }

// Size returns the counted cost and the real cost.
func (h *History) Size() (counted, real int) {
	for i := range h.h.parts {
		real += h.h.parts[i].cost()
	}
	return h.h.size, real
}

// Feed is an observer without a connection. Its terminal has a state, and tests give it
// envelopes.
type Feed struct {
	*Observer
	conn Conn
}

func NewFeed(opts ObserverOptions, uri string) *Feed {
	f := &Feed{Observer: NewObserver(opts)}
	f.Follow(uri)
	f.mu.Lock()
	f.terminals[uri].synced = true
	f.mu.Unlock()
	f.conn.opts.OnEnvelope = f.envelope
	return f
}

// Give handles the params of an envelope as a connection does.
func (f *Feed) Give(params []byte) { f.conn.deliver(ahp.MethodAction, params) }
