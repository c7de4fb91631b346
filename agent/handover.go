package agent

import (
	"fmt"

	"tether/agent/localapi"
)

// Shutdown makes Run end the terminals and return soon.
func (a *Agent) Shutdown() {
	a.killing.Store(true)
	a.end()
}

// HandOver makes Run return soon and leave the terminals to the next daemon. It refuses if there are terminals that cannot be left, unless
// r.Force is set.
func (a *Agent) HandOver(r localapi.HandOverRequest) (localapi.HandOver, error) {
	fragile := a.pool.Fragile()
	if len(fragile) > 0 && !r.Force {
		return localapi.HandOver{}, &localapi.Error{Code: localapi.CodeWouldEnd,
			Message: fmt.Sprintf("%d terminals run in the daemon itself and would end with it, the first is %s", len(fragile), fragile[0].ID),
			Hint:    "end them first, or use --force"}
	}
	running := a.Status().Terminals.Running
	a.end()
	return localapi.HandOver{SchemaVersion: localapi.SchemaVersion, Kept: running - len(fragile), Ended: len(fragile)}, nil
}

// Kept returns how many terminals continue after Run has returned.
func (a *Agent) Kept() int { return a.kept }
