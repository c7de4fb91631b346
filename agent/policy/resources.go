package policy

import (
	"time"

	"tether/agent/term"
)

// Resources bounds what runs for one agent. Zero values bound nothing.
type Resources struct {
	CPUTime   time.Duration // of each process
	Processes int           // of all
	Memory    int64         // bytes, of all
}

// TimeLimit is how long a command of the agent's that is not in the background
// may run, 0 for as long as it likes.
func (e *Engine) TimeLimit(a term.Actor) time.Duration {
	if a.Role != term.RoleAgent {
		return 0
	}
	return time.Duration(e.config.Limits.CommandTime)
}

// Resources returns what the actor's commands may use. The person's are not
// bounded.
func (e *Engine) Resources(a term.Actor) Resources {
	if a.Role != term.RoleAgent {
		return Resources{}
	}
	l := e.config.Limits
	return Resources{CPUTime: time.Duration(l.CPUTime), Processes: l.Processes, Memory: int64(l.Memory)}
}
