package local

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/vocab"
)

// previewSize and previewEvery bound the previews of background terminals to which a
// client is not attached: a preview has at most the newest previewSize bytes of text, and
// comes at most once in previewEvery.
const (
	previewSize  = 4 << 10
	previewEvery = time.Second
)

// eventKind is the kind of a terminal's event.
type eventKind string

// The events of terminals. A client gets the events of all terminals that it may see, but
// eventOutput only of background terminals.
const (
	eventCreated  eventKind = "created"
	eventPromoted eventKind = "promoted"
	eventClosed   eventKind = "closed"
	eventOutput   eventKind = "output"
)

// session describes a terminal in this protocol.
type session struct {
	ID        string   `json:"id"`
	Cwd       string   `json:"cwd"`
	Owner     string   `json:"owner"` // user or agent
	Visible   bool     `json:"visible"`
	CreatedAt int64    `json:"createdAt"` // Unix ms
	Command   []string `json:"command"`
	// The following fields are additions of tether to the protocol.
	Principal string           `json:"principal,omitempty"` // name of the agent that owns the terminal, if one does
	Name      string           `json:"name"`
	Title     string           `json:"title"`
	Cols      int              `json:"cols"`
	Rows      int              `json:"rows"`
	Private   bool             `json:"private,omitempty"`
	LentTo    []string         `json:"lentTo,omitempty"`
	ExitCode  *int             `json:"exitCode,omitempty"`
	Signal    string           `json:"signal,omitempty"`
	ExitedAt  int64            `json:"exitedAt,omitempty"` // Unix ms
	Reason    vocab.ExitReason `json:"reason,omitempty"`   // how it ended: exited, killed or timeout
}

func sessionFrom(i term.Info) session {
	s := session{
		ID: string(i.ID), Cwd: i.Cwd, Owner: "user", Visible: i.Visible, CreatedAt: i.Started.UnixMilli(), Command: i.Command,
		Name: i.Name, Title: i.Title, Cols: int(i.Size.Cols), Rows: int(i.Size.Rows), Private: i.Private, LentTo: i.LentTo,
	}
	if i.Owner.Role == term.RoleAgent {
		s.Owner, s.Principal = "agent", i.Owner.Name
	}
	if e := i.Exit; e != nil {
		s.ExitCode, s.Signal, s.ExitedAt, s.Reason = &e.Code, e.Signal, e.At.UnixMilli(), e.Reason
	}
	return s
}

// terminalEvent is the message of one event.
type terminalEvent struct {
	Type     string    `json:"type"` // "terminal"
	Event    eventKind `json:"event"`
	Terminal session   `json:"terminal"`
	Output   string    `json:"output,omitempty"` // set for eventOutput only, as are the next two fields
	Offset   *int64    `json:"offset,omitempty"` // offset of Output in the terminal's text
	Missed   bool      `json:"truncated,omitempty"`
}

// uiEvents records of which terminals a client was told. Only run uses it.
//
// Events are made from the difference between this record and the pool when they can be
// sent, so that none is queued. A client that reads late gets fewer events, for the
// difference that there is then.
type uiEvents struct {
	known    map[term.ID]*knownTerminal
	previews []*preview
	dirty    bool // the record must be compared with the pool
}

type knownTerminal struct {
	info    term.Info // at the last comparison
	closed  bool      // the client was told of the end, or the terminal ended before the client came
	preview *preview
}

// background reports whether this is an agent's terminal that the person is not shown.
func background(i term.Info) bool { return i.Owner.Role == term.RoleAgent && !i.Visible }

// begin records the existing terminals, for which there are no events. It runs before the
// first answer, so that a client that has got an answer misses no later output.
func (e *uiEvents) begin(c *client) {
	e.known = map[term.ID]*knownTerminal{}
	for _, h := range c.access.List() {
		i := h.Info()
		k := &knownTerminal{info: i, closed: i.Exit != nil}
		e.known[i.ID] = k
		e.look(c, h, k, false)
	}
	e.dirty = true
}

func (e *uiEvents) end() {
	for _, p := range e.previews {
		p.reader.Close()
	}
	e.previews = nil
}

// attached ends the preview of a terminal to which the client has attached. detached
// makes the next step compare the record with the pool, which may begin the preview
// again.
func (e *uiEvents) attached(id string) { e.drop(term.ID(id)) }

func (e *uiEvents) detached() { e.dirty = true }

// step sends the events and previews that are due.
func (e *uiEvents) step(c *client) (worked bool, err error) {
	if c.changed.Swap(false) || e.dirty {
		e.dirty = false
		if worked, err = e.compare(c); err != nil {
			return worked, err
		}
	}
	if len(e.previews) == 0 {
		return worked, nil
	}
	now := time.Now()
	for _, p := range e.previews {
		if p.due.After(now) {
			continue
		}
		sent, err := p.step(c)
		if worked = worked || sent; err != nil {
			return worked, err
		}
		p.due = now
		if sent && p.known.info.Exit == nil {
			p.due = now.Add(previewEvery)
		}
	}
	e.sweep()
	return worked || e.dirty, nil
}

// compare sends the difference between the record and the pool.
func (e *uiEvents) compare(c *client) (worked bool, err error) {
	tell := func(event eventKind, i term.Info) {
		if err == nil {
			worked, err = true, c.tell(terminalEvent{Event: event, Terminal: sessionFrom(i)})
		}
	}
	there := map[term.ID]bool{}
	for _, h := range c.access.List() {
		i := h.Info()
		there[i.ID] = true
		k, event := e.known[i.ID], eventKind("")
		switch {
		case k == nil:
			k, event = &knownTerminal{}, eventCreated
			e.known[i.ID] = k
		case background(k.info) && !background(i):
			event = eventPromoted
		}
		k.info = i
		_, streamed := c.stream(string(i.ID))
		e.look(c, h, k, streamed >= 0) // before the event, so that no output after the event is missed
		if event != "" {
			tell(event, i)
		}
		if i.Exit != nil && !k.closed && streamed < 0 && k.preview == nil {
			k.closed = true
			tell(eventClosed, i)
		}
	}
	for id, k := range e.known {
		if there[id] {
			continue
		}
		e.drop(id)
		if !k.closed {
			tell(eventClosed, k.info)
		}
		delete(e.known, id)
	}
	return worked, err
}

// look starts or ends the preview of a terminal as needed. The preview of an exited
// terminal continues to its last output.
func (e *uiEvents) look(c *client, h term.Handle, k *knownTerminal, attached bool) {
	switch {
	case attached || !background(k.info):
		e.drop(k.info.ID)
	case k.preview != nil && k.info.Exit != nil:
		k.preview.due = time.Time{}
	case k.preview == nil && k.info.Exit == nil:
		p := &preview{terminal: h, known: k}
		if p.open(c, -1) == nil {
			k.preview = p
			e.previews = append(e.previews, p)
		}
	}
}

// drop ends the preview of a terminal, if there is one.
func (e *uiEvents) drop(id term.ID) {
	if k := e.known[id]; k != nil && k.preview != nil {
		k.preview.ended = true
		e.sweep()
	}
}

// sweep removes the previews that have ended.
func (e *uiEvents) sweep() {
	e.previews = slices.DeleteFunc(e.previews, func(p *preview) bool {
		if !p.ended {
			return false
		}
		p.reader.Close()
		p.known.preview, e.dirty = nil, true
		return true
	})
}

// arm makes the previews that are due wake run at the next output. It returns when the
// first of the other previews is due; zero if there is none.
func (e *uiEvents) arm(now time.Time) (first time.Time) {
	for _, p := range e.previews {
		switch {
		case !p.due.After(now):
			p.reader.Ready(1)
		case first.IsZero() || p.due.Before(first):
			first = p.due
		}
	}
	return first
}

func (c *client) tell(e terminalEvent) error {
	e.Type = ptyTerminal
	frame, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return c.send(frame)
}

// preview sends excerpts of a background terminal's output.
type preview struct {
	terminal term.Handle
	known    *knownTerminal
	reader   *output.Reader
	due      time.Time // when the next excerpt may be sent
	ended    bool      // to be removed by sweep
	missed   bool      // output was left out since the last excerpt
}

func (p *preview) open(c *client, tail int64) error {
	rd, err := p.terminal.Reader(output.ReaderOptions{View: output.ViewText, Tail: tail, Wake: c.wake})
	if err != nil {
		return err
	}
	if p.reader != nil {
		p.reader.Close()
	}
	p.reader = rd
	return nil
}

// step sends an excerpt if there is new output.
func (p *preview) step(c *client) (sent bool, err error) {
	if p.reader.Pending() > previewSize {
		p.missed = true
		if p.open(c, previewSize) != nil {
			p.ended = true // the client may not read the terminal any more
			return false, nil
		}
	}
	t := collect(p.reader, c.buf.text, math.MaxInt64, previewSize)
	c.buf.text = t.Data
	p.ended = t.exit != nil
	if len(t.Data) == 0 {
		return false, nil
	}
	out := t.newest(previewSize)
	e := terminalEvent{Event: eventOutput, Terminal: sessionFrom(p.known.info), Output: string(out.Data), Offset: &out.Off}
	e.Missed = p.missed || t.lagged || out.Off > t.Off
	p.missed = false
	return true, c.tell(e)
}
