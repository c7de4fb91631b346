package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/integrate"
	"tether/agent/local"
	"tether/agent/term"
	"tether/platform/dirs"
	"tether/platform/shell"
)

// Spec turns a request into what is run. Every terminal of the person passes
// here, so this is where its environment and arguments are completed.
func (a *Agent) Spec(ctx context.Context, r local.SpawnRequest) (term.Spec, error) {
	env := r.Env
	if env == nil {
		var err error
		if env, err = a.Environment(ctx, false); err != nil {
			a.log.Warn().Err(err).Msg("login environment unknown; a terminal gets the daemon's")
			env = os.Environ()
		}
		if r.Agent {
			env = integrate.Environ(env, nil, a.settings.Policy.HideEnv)
		}
	}
	onSlow, ok := onSlows[r.OnSlow]
	if !ok {
		return term.Spec{}, bad("on_slow %.20q must be lag or hold", r.OnSlow)
	}
	for _, text := range slices.Concat(r.Command, env, r.SetEnv, []string{r.Cwd, r.Line}) {
		if strings.ContainsRune(text, 0) {
			return term.Spec{}, bad("%.40q has a NUL byte", text)
		}
	}
	for _, e := range r.SetEnv {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return term.Spec{}, bad("set_env %.40q is not of the form NAME=value", e)
		}
	}
	command, err := commandOf(r)
	if err != nil {
		return term.Spec{}, err
	}
	lendTo, err := a.lendTo(r)
	if err != nil {
		return term.Spec{}, err
	}
	spec := term.Spec{
		Command: command, Env: environment(shell.Merge(env, r.SetEnv)), Name: r.Name, Cwd: r.Cwd,
		Size: term.Size{Cols: r.Cols, Rows: r.Rows}, Private: r.Private, OnSlow: onSlow, LendTo: lendTo, Leased: r.Leased, Door: r.Door,
	}
	if len(spec.Command) > 0 && r.Line == "" && !r.NoIntegration {
		err = a.integrate(&spec, r.Shell)
	}
	return spec, err
}

// commandOf is the argv that the request stands for.
func commandOf(r local.SpawnRequest) ([]string, error) {
	switch {
	case r.Line != "" && (len(r.Command) > 0 || r.Shell):
		return nil, bad("line goes with neither command nor shell")
	case r.Line != "":
		return shell.Line(r.Line), nil
	case r.Shell && len(r.Command) == 0:
		return []string{shell.Login()}, nil
	case r.Shell:
		return append([]string{shell.Find(r.Command[0])}, r.Command[1:]...), nil
	}
	return r.Command, nil
}

// Environment returns the environment of an interactive login of the person,
// asking the login shell the first time and, if refresh, again.
func (a *Agent) Environment(ctx context.Context, refresh bool) ([]string, error) {
	if refresh {
		return a.login().Refresh(ctx)
	}
	return a.login().Get(ctx)
}

// loginCache finds the login shell, which may take a moment.
func loginCache() *shell.Cache {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0] // the shell then finds it, or says that it does not
	}
	return &shell.Cache{Path: shell.Login(), Self: self}
}

// environment is env without what is tether's own business, above all
// credentials, and with what programs on a terminal rely on.
func environment(env []string) []string {
	var out []string
	typed := false
	for _, e := range env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.HasPrefix(name, "TETHER_") && name != dirs.HomeVar {
			continue
		}
		typed = typed || name == "TERM"
		out = append(out, e)
	}
	if !typed {
		out = append(out, "TERM=xterm-256color")
	}
	return out
}

func bad(format string, args ...any) error {
	return &local.Error{Code: local.CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}

func notPaired(name string) error {
	return &local.Error{Code: local.CodeNotPaired, Message: fmt.Sprintf("no host %q is paired", name),
		Hint: "tether status lists the hosts"}
}

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
