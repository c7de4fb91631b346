package declared_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tether/agent/config"
	"tether/agent/declared"
	"tether/platform/proc"
	"tether/vocab"
)

// machine plays a daemon's terminals, and those that outlive it.
type machine struct {
	mu      sync.Mutex
	n       map[string]int
	all     map[string]*terminal
	pending map[string]bool
	refuse  error        // the error of a start
	block   bool         // Prepare waits for its context
	limits  *proc.Limits // of the newest terminal
}

func newMachine() *machine {
	return &machine{n: map[string]int{}, all: map[string]*terminal{}, pending: map[string]bool{}}
}

func (m *machine) Prepare(ctx context.Context, d config.Declared, limits *proc.Limits) (string, func() (declared.Terminal, error), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.block {
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return "", nil, ctx.Err()
	}
	m.n[d.Name]++
	m.limits = limits
	id := fmt.Sprintf("%s-%d", d.Name, m.n[d.Name])
	return id, func() (declared.Terminal, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.refuse != nil {
			return nil, m.refuse
		}
		m.all[id] = &terminal{id: id, name: d.Name, began: time.Now(), done: make(chan struct{}), holds: make(chan struct{})}
		return m.all[id], nil
	}, nil
}

func (m *machine) Find(id string) (declared.Terminal, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.all[id]; t != nil && !m.pending[id] {
		return t, false
	}
	return nil, m.pending[id]
}

// running returns the names of the running terminals, by id.
func (m *machine) running() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for id, t := range m.all {
		if !t.Over() {
			out[id] = t.name
		}
	}
	return out
}

func (m *machine) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

type terminal struct {
	id, name string
	began    time.Time
	stubborn bool // Kill does not end it

	holds chan struct{} // closed by ready: its condition holds

	mu   sync.Mutex
	told []string // what SetReady was told

	once sync.Once
	done chan struct{}
	end  declared.End // set before done is closed
}

func (t *terminal) ID() string { return t.id }

func (t *terminal) Started() time.Time { return t.began }

func (t *terminal) Port() int { return 3000 }

func (t *terminal) Await(ctx context.Context, d config.Declared, _ bool) error {
	select {
	case <-t.holds:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no program of it listens on port %d", d.Ready.Port)
	}
}

func (t *terminal) SetReady(s vocab.ReadyState, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = append(t.told, string(s)+": "+why)
}

func (t *terminal) ready() { close(t.holds) }

func (t *terminal) Over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func (t *terminal) Wait(ctx context.Context) (declared.End, error) {
	select {
	case <-t.done:
		return t.end, nil
	case <-ctx.Done():
		return declared.End{}, ctx.Err()
	}
}

func (t *terminal) Kill(ctx context.Context) error {
	if t.stubborn {
		<-ctx.Done()
		return ctx.Err()
	}
	t.exit(declared.End{Code: 143, Killed: true})
	return nil
}

func (t *terminal) exit(e declared.End) {
	t.once.Do(func() {
		e.Ran, e.At = t.began, time.Now()
		t.end = e
		close(t.done)
	})
}

var errNoProgram = errors.New("start \"npm\": no such program")
