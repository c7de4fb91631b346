package tui

import (
	"sync"
	"time"

	"tether/agent/localapi"
)

// portsEvery is the least time between two requests for listening ports. They take longer
// than other requests, on macOS some 100 ms.
const portsEvery = 5 * time.Second

// ports remembers the terminals' listening ports between two requests for them. It is
// safe for concurrent use.
type ports struct {
	mu    sync.Mutex
	asked time.Time
	known map[string][]localapi.Listening // by the terminal's id
}

// due reports whether the ports are to be requested now. If so, the caller must request
// them.
func (p *ports) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && time.Since(p.asked) < portsEvery {
		return false
	}
	p.asked = time.Now()
	return true
}

// note remembers the ports in a list.
func (p *ports) note(all []localapi.Terminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = map[string][]localapi.Listening{}
	for _, t := range all {
		p.known[t.ID] = t.Listening
	}
}

// fill adds the remembered ports to a list without ports, except for exited terminals.
func (p *ports) fill(all []localapi.Terminal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range all {
		if all[i].Exit == nil {
			all[i].Listening = p.known[all[i].ID]
		}
	}
}
