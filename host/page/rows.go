package page

import (
	"encoding/json"
	"net/http"
	"time"

	"tether/agenttools"
	"tether/host/admission"
	"tether/host/rights"
	"tether/vocab"
)

const (
	rowsEvery = 300 * time.Millisecond // the shortest time between two lists for one page
	rowsAlive = 20 * time.Second       // an empty line, so that proxies and dead browsers are noticed
)

// Summary is what every list of terminals says of one.
type Summary struct {
	ID       string `json:"id"`
	Machine  string `json:"machine"`
	Owner    string `json:"owner,omitempty"` // of the machine; empty: the administrator
	Name     string `json:"name"`            // with which it was announced
	State    string `json:"state"`           // running, away (the machine is away) or exited
	Cols     int    `json:"cols"`
	Rows     int    `json:"rows"`
	Watching int    `json:"watching"` // number of watchers

	Ports []OpenPort `json:"ports,omitempty"` // open to those who see the terminal
}

// Row is a terminal as the page lists it.
type Row struct {
	Summary
	URI      string          `json:"uri"`
	Title    string          `json:"title"`
	Cwd      string          `json:"cwd,omitempty"`
	Checkout *vocab.Checkout `json:"checkout,omitempty"` // the git work tree of Cwd
	Label    string          `json:"label,omitempty"`    // of Checkout, for people: feat/login@3f2a91c
	Adopted  string          `json:"adopted,omitempty"`  // for people, if it only reads a pane of another program: adopted from tmux
	Running  string          `json:"running,omitempty"`  // the command line that a shell runs now
	URL      string          `json:"url,omitempty"`      // of its machine, that the program has printed
	Awaits   string          `json:"awaits,omitempty"`   // awaiting_input or awaiting_secret, while it waits for typed input
	Ready    string          `json:"ready,omitempty"`    // starting, ready, failed or stopped, if the owner has said when it is ready
	ExitCode *int            `json:"exitCode,omitempty"`
	Target   string          `json:"target"`            // client or server
	Claim    string          `json:"claim"`             // name of the claim's holder
	Created  int64           `json:"created"`           // Unix time in ms
	Away     int64           `json:"away,omitempty"`    // since when its machine is not connected, Unix time in ms
	AwayWhy  string          `json:"awayWhy,omitempty"` // why, if its machine may still be connected
	Until    int64           `json:"until,omitempty"`   // until when the host keeps a parked terminal; Unix time in ms
	Dropped  string          `json:"dropped,omitempty"` // why its text was dropped
}

// Update is a message for a page: the whole list, or the changes since the last one.
type Update struct {
	Whole bool              `json:"whole,omitempty"` // Rows is the whole list
	Rows  []json.RawMessage `json:"rows"`            // new and changed rows, in the order of creation
	Gone  []string          `json:"gone,omitempty"`  // ids of removed rows
	// Me is sent with the whole list if audiences are in force: the name of the person
	// who looks, empty for an administrator.
	Me *string `json:"me,omitempty"`
}

// events sends the list, and then its changes, as server-sent events.
func (pg *Page) events(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	if r.Method == http.MethodHead {
		return nil // with this, the page only asks whether it is still logged in; a stream would keep the connection
	}
	list := pg.opts.Terminals.Follow(p)
	defer list.Close()
	out := http.NewResponseController(w)
	alive := time.NewTicker(rowsAlive)
	defer alive.Stop()
	send := func(line []byte) bool {
		if err := out.SetWriteDeadline(time.Now().Add(pg.opts.StallTime)); err != nil {
			return false
		}
		_, err := w.Write(line)
		return err == nil && out.Flush() == nil
	}
	for version := int64(0); ; {
		u, now, moved := list.Since(version)
		version = max(now, 1)
		data, err := json.Marshal(u)
		if err != nil || !send(append(append([]byte("data: "), data...), "\n\n"...)) {
			return nil
		}
		pause := time.NewTimer(rowsEvery)
		for waiting := true; waiting; {
			select {
			case <-moved:
				waiting = false
			case <-alive.C:
				waiting = send([]byte(":\n\n"))
				if !waiting {
					return nil
				}
			case <-r.Context().Done():
				return nil
			case <-p.Life().Done():
				return nil
			case <-pg.opts.Done:
				return nil
			}
		}
		select {
		case <-pause.C:
		case <-r.Context().Done():
			return nil
		}
	}
}

// OpenPort is a lent port as lists show it.
type OpenPort struct {
	agenttools.LentPort
	Until   int64 `json:"until,omitempty"` // Unix time in ms; 0: for as long as the terminal is lent
	Fetched int64 `json:"fetched"`         // requests so far
}
