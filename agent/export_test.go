package agent

import (
	"tether/agent/localapi"
)

// OpenLog is openLog.
var OpenLog = openLog

// Degraded is degraded, Report and List its methods.
type Degraded = degraded

func (d *degraded) Report(cause, text string) { d.report(cause, text) }
func (d *degraded) List() []localapi.Degraded { return d.list() }

// HolderKey returns the holders' key.
var HolderKey = holderKey
