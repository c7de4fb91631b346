package agent

import (
	"cmp"
	"os"
	"strings"
	"time"

	"tether/agent/config"
	"tether/agent/redact"
	"tether/agent/start"
	"tether/agent/term"
)

// terminalOptions are the configured options, overridden by those in over.
func terminalOptions(settings config.Config, over term.Options) term.Options {
	c := settings.Terminals
	over.LogBytes = cmp.Or(over.LogBytes, int(c.LogBytes))
	over.TotalLogBytes = cmp.Or(over.TotalLogBytes, int64(c.TotalLogBytes))
	over.MaxTerminals = cmp.Or(over.MaxTerminals, c.MaxRunning)
	over.KeepExited = cmp.Or(over.KeepExited, c.KeepExited)
	over.KeepFor = cmp.Or(over.KeepFor, time.Duration(c.KeepFor))
	over.OnSlowUser = cmp.Or(over.OnSlowUser, onSlow(c.OnSlowUser))
	over.OnSlowAgent = cmp.Or(over.OnSlowAgent, onSlow(c.OnSlowAgent))
	over.Stall = cmp.Or(over.Stall, time.Duration(c.StallTime))
	over.KillGrace = cmp.Or(over.KillGrace, time.Duration(c.KillGrace))
	over.IgnoreUnsigned = over.IgnoreUnsigned || settings.ShellIntegration.Unsigned == config.UnsignedIgnore
	return over
}

// outwardRules are the rules for the view of hosts.
func outwardRules(c config.Lend) (*redact.Rules, error) {
	return redact.Compile(redact.Options{
		Clipboard: c.Clipboard, FileLinks: c.FileLinks, Images: int64(c.Images), Tokens: c.Redact, Patterns: c.RedactPatterns,
	})
}

// onSlow is the meaning of a configured word, which has been checked.
func onSlow(word string) term.OnSlow {
	o, _ := start.OnSlow(word)
	return o
}

// machineName is this machine's name for hosts, without the domain; "" if it has none.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}
