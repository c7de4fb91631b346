package agent

import (
	"errors"
	"fmt"
	"path/filepath"

	"tether/agent/integrate"
	"tether/agent/term"
	"tether/platform/dirs"
)

// scriptsDir holds, per terminal, what its shell reads at its start.
func scriptsDir(d dirs.Dirs) string { return filepath.Join(d.Runtime, "sh") }

// integrate changes how the interactive shell of spec is started, so that it
// reports its commands.
func (a *Agent) integrate(spec *term.Spec, login bool) error {
	err := integrate.Shell(spec, scriptsDir(a.cfg.Dirs), login)
	if err != nil && !errors.Is(err, integrate.ErrScripts) {
		return err
	}
	if err != nil || spec.Ended != nil {
		a.reportScripts(err)
	}
	return nil
}

// scriptsCause is the cause in status when shells run without integration.
const scriptsCause = "shell integration"

// reportScripts tells status that a shell starts without what could not be
// written for it, or that all is well again.
func (a *Agent) reportScripts(err error) {
	if err == nil {
		a.degraded.report(scriptsCause, "")
		return
	}
	a.log.Warn().Err(err).Msg("a shell starts without integration")
	a.degraded.report(scriptsCause, fmt.Sprintf("the last shell started without integration: %v", err))
}
