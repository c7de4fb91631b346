package host

import (
	"context"
	"encoding/json"
	"reflect"
	"weak"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/output"
	"tether/host/terminals"
)

// Prepared is how many bytes are kept for single subscribers that are brought back, and
// for how many subscriptions.
func (h *Host) Prepared() (bytes, subscriptions int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		for _, s := range c.subs {
			own := reflect.ValueOf(s.Subscription).Elem().FieldByName("own")
			if own.Len() > 0 {
				subscriptions++
			}
			for i := range own.Len() {
				bytes += own.Index(i).FieldByName("Msg").Len()
			}
		}
	}
	return bytes, subscriptions
}

// Memory is the host's count for all terminals, their real memory, and the least that one
// of them has.
func (h *Host) Memory() (counted, real, least int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := -1
	for t := range h.terminals.Every() {
		i++
		n := t.Out.Held() + t.Channel.Bytes()
		if real += n; i == 0 || n < least {
			least = n
		}
	}
	counted, _ = h.terminals.Memory.Used()
	return counted, real, least
}

// Lines is how many bytes of command lines a terminal keeps for readers.
func (f *Feed) Lines() (bytes int) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	buf := make([]byte, 1<<10)
	for r := f.t.Out.Reader(0); ; {
		ev, ok, found, _ := r.Find(len(buf), 0)
		switch {
		case found:
			r.Decode(buf)
		case !ok:
			return bytes
		case ev.Finished != nil:
			bytes += len(ev.Finished.Text())
		}
	}
}

// Running is the command line that runs in a terminal.
func (f *Feed) Running() string {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	return f.t.Describe(0).Running
}

// Newest points to the newest envelope of a terminal, without keeping it.
func (f *Feed) Newest() weak.Pointer[byte] {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	newest, _ := f.t.Channel.Entries(f.t.Channel.Index() - 1)
	for _, e := range newest {
		return weak.Make(&e.Msg[0])
	}
	return weak.Pointer[byte]{}
}

// TextPath is where a terminal can be had as text.
func (f *Feed) TextPath() string { return "/terminals/" + f.t.ID + ".txt" }

// Break makes reading the newest text of a terminal meet a bug.
func (f *Feed) Break() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.t.Out = output.New(1<<20, *f.t.State, broken{})
	text, _ := output.Clean([]byte(`"broken"`))
	f.t.Out.Text(text)
}

// broken damages text on its way.
type broken struct{ output.Emitter }

func (broken) Text([]byte, int64) []byte { return []byte{'\\'} }

// Recorded is the text of a terminal.
func (f *Feed) Recorded() string {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	s := terminals.Snapshot{State: *f.t.State, Version: ahp.Versions()[0], Text: f.t.Out.View(1<<30, 0)}
	var is struct{ State ahp.TerminalState }
	if err := json.Unmarshal(s.Append(nil), &is); err != nil {
		return err.Error()
	}
	return is.State.Text()
}

// Awaited reports whether somebody waits for a terminal's next output.
func (h *Host) Awaited(uri string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals.ByURI[uri]
	return t != nil && t.Moved.Awaited()
}

// Taken is how much the sockets of all clients called id have taken, in bytes.
func (h *Host) Taken(id string) (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		if c.link.Client != nil && c.link.Client.ID() == id {
			n += c.pulse.Channel.Written()
		}
	}
	return n
}

// Screen is the terminal's screen, and whether a part of it is unknown.
func (f *Feed) Screen() (text string, truncated bool) {
	at, _ := f.h.terminals.View(nil).Find(f.t.ID)
	is, _, err := agenttools.Showing(context.Background(), at)
	if err != nil {
		return err.Error(), true
	}
	return is.Text(), is.Doubtful()
}
