package agent

import "tether/agent/local"

// OpenLog is openLog.
var OpenLog = openLog

// Degraded is degraded, Report and List its methods.
type Degraded = degraded

func (d *degraded) Report(cause, text string) { d.report(cause, text) }
func (d *degraded) List() []local.Degraded    { return d.list() }

// CameUp is what a link to a host calls each time it comes up, and up what hears of that.
func CameUp(name string, up func(name string, more int)) func() { return (&links{up: up}).cameUp(name) }
