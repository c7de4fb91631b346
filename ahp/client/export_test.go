package client

import "tether/ahp"

// History is history for tests.
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

// Size is the cost as counted, and the real cost.
func (h *History) Size() (counted, real int) {
	for i := range h.h.parts {
		real += h.h.parts[i].cost()
	}
	return h.h.size, real
}

// Feed is an observer without a connection whose terminal has a state, to be given envelopes by hand.
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

// Give takes the params of an envelope the way a connection does.
func (f *Feed) Give(params []byte) { f.conn.deliver(ahp.MethodAction, params) }
