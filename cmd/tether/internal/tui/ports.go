package tui

import (
	"sync"
	"time"

	"tether/agent/localapi"
)

// portsEvery is how often the screen has the daemon look for ports: it takes longer than all else, on macOS some hundred milliseconds.
const portsEvery = 5 * time.Second

// ports remembers the terminals' listening ports between two looks. It is safe for concurrent use.
type ports struct {
	mu    sync.Mutex
	asked time.Time
	known map[string][]localapi.Listening // by the terminal's id
}

// due reports whether it is time to look for them; then it is the caller's turn.
func (p *ports) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && time.Since(p.asked) < portsEvery {
		return false
	}
	p.asked = time.Now()
	return true
}

// note remembers the ports of a list.
func (p *ports) note(all []localapi.Terminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = map[string][]localapi.Listening{}
	for _, t := range all {
		p.known[t.ID] = t.Listening
	}
}

// fill puts them into a list without, except for terminals that have ended.
func (p *ports) fill(all []localapi.Terminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range all {
		if all[i].Exit == nil {
			all[i].Listening = p.known[all[i].ID]
		}
	}
}
