package host

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	rowsEvery = 300 * time.Millisecond // the shortest time between two lists for one page
	rowsAlive = 20 * time.Second       // an empty line, so that proxies and dead browsers are noticed
)

// row is a terminal as the page lists it.
type row struct {
	ID       string `json:"id"`
	URI      string `json:"uri"`
	Machine  string `json:"machine"`
	Name     string `json:"name"` // without the machine
	Title    string `json:"title"`
	Cwd      string `json:"cwd,omitempty"`
	Running  string `json:"running,omitempty"` // the command line that a shell runs now
	State    string `json:"state"`             // running, away (its machine is) or exited
	ExitCode *int   `json:"exitCode,omitempty"`
	Target   string `json:"target"` // client or server
	Claim    string `json:"claim"`  // who holds it
	Cols     int    `json:"cols"`
	Rows     int    `json:"rows"`
	Created  int64  `json:"created"` // Unix time in ms
	Watching int    `json:"watching"`
}

func (t *terminal) rowLocked() row {
	i := t.describeLocked()
	r := row{ID: i.ID, URI: t.uri, Machine: i.Machine, Name: t.name, Title: i.Title, Cwd: i.Cwd, Running: i.Running, State: "running",
		Target: string(t.state.ExecutionTarget), Claim: t.state.Claim.ClientID, Cols: i.Cols, Rows: i.Rows, Created: i.CreatedAt.UnixMilli()}
	if t.state.Claim.Kind != "" && t.state.Claim.ClientID == "" {
		r.Claim = string(t.state.Claim.Kind)
	}
	switch {
	case i.Exit != nil:
		r.State = "exited"
		if t.state.Lifecycle.ExitCode != nil {
			r.ExitCode = &i.Exit.Code
		}
	case t.remote() && t.bound == nil:
		r.State = "away"
	}
	for _, s := range t.subs {
		if !t.ownedBy(s.conn) {
			r.Watching++
		}
	}
	return r
}

// rowsChangedLocked says that what pages list has changed.
func (h *Host) rowsChangedLocked() {
	if h.rowsMoved != nil {
		close(h.rowsMoved)
		h.rowsMoved = nil
	}
}

// rows are the list, and what is closed when it changes.
func (h *Host) rows() ([]row, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]row, 0, len(h.order))
	for _, t := range h.order {
		all = append(all, t.rowLocked())
	}
	if h.rowsMoved == nil {
		h.rowsMoved = make(chan struct{})
	}
	return all, h.rowsMoved
}

// events sends the list whenever it changes, as server-sent events.
func (h *Host) events(w http.ResponseWriter, r *http.Request, p Principal) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	out := http.NewResponseController(w)
	alive := time.NewTicker(rowsAlive)
	defer alive.Stop()
	send := func(line []byte) bool {
		if err := out.SetWriteDeadline(time.Now().Add(h.opts.StallTime)); err != nil {
			return false
		}
		_, err := w.Write(line)
		return err == nil && out.Flush() == nil
	}
	for {
		all, moved := h.rows()
		data, err := json.Marshal(map[string]any{"host": h.opts.Info.Version, "terminals": all})
		if err != nil || !send(append(append([]byte("data: "), data...), "\n\n"...)) {
			return
		}
		pause := time.NewTimer(rowsEvery)
		for waiting := true; waiting; {
			select {
			case <-moved:
				waiting = false
			case <-alive.C:
				waiting = send([]byte(":\n\n"))
				if !waiting {
					return
				}
			case <-r.Context().Done():
				return
			case <-p.live().Done():
				return
			case <-h.ctx.Done():
				return
			}
		}
		select {
		case <-pause.C:
		case <-r.Context().Done():
			return
		}
	}
}
