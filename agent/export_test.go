package agent

import (
	"tether/agent/localapi"
	"tether/vocab"
)

// OpenLog is openLog.
var OpenLog = openLog

// Degraded is degraded, Report and List its methods.
type Degraded = degraded

func (d *degraded) Report(cause, text string) { d.report(cause, text) }
func (d *degraded) List() []localapi.Degraded { return d.list() }

// HolderKey returns the holders' key.
var HolderKey = holderKey

// TellsCheckout reports whether a host may know of a checkout, see tellsCheckout.
func (a *Agent) TellsCheckout(host string, c vocab.Checkout) bool { return a.tellsCheckout(host, c) }
