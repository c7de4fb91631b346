package agent

import "tether/agent/localapi"

// Shutdown makes Run end the terminals and return soon.
func (a *Agent) Shutdown() {
	a.killing.Store(true)
	a.end()
}

// HandOver makes Run return soon and leave the terminals to the next daemon.
func (a *Agent) HandOver() localapi.HandOver {
	running := a.Status().Terminals.Running
	a.end()
	return localapi.HandOver{SchemaVersion: localapi.SchemaVersion, Kept: running}
}

// Kept returns how many terminals continue after Run has returned.
func (a *Agent) Kept() int { return int(a.kept.Load()) }
