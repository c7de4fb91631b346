package start

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"tether/agent/integrate"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/shell"
)

// Specs works out the spec of a request: argv, environment, shell integration, and the
// hosts to which the terminal is lent.
type Specs struct {
	// Environment is that of an interactive login of the person.
	Environment func(ctx context.Context, refresh bool) ([]string, error)
	// Umask is that of such a login, 0 if it is not known.
	Umask func(ctx context.Context) int
	// Own are the daemon's limits.
	Own proc.Limits
	// HideEnv names variables that agents do not get, as patterns.
	HideEnv []string
	// LendTo says which hosts see the terminal. Its error is the caller's.
	LendTo func(Request) ([]string, error)
	// Scripts is the directory with a folder per terminal of the files that its shell
	// reads at its start.
	Scripts string
	// Report says that something does not work, or with an empty text that it works
	// again.
	Report func(cause, text string)
	Logger *zerolog.Logger
}

// Spec turns a request into a spec. Every terminal passes here, so its environment and
// arguments are completed here.
func (s *Specs) Spec(ctx context.Context, r Request) (term.Spec, error) {
	env, notice := r.Env, ""
	if env == nil {
		var err error
		if env, err = s.Environment(ctx, false); err != nil {
			s.Logger.Warn().Err(err).Msg("login environment unknown; a terminal gets the daemon's")
			env = os.Environ()
			notice = fmt.Sprintf("the environment is the daemon's, not that of a login: %v", err)
		}
		// A login does not say where this daemon has its socket. tether in the terminal
		// has to find it.
		if own, ok := os.LookupEnv(dirs.HomeVar); ok {
			env = append(slices.Clip(env), dirs.HomeVar+"="+own)
		}
		if r.ByAgent() {
			env = integrate.Environ(env, nil, s.HideEnv)
		}
	}
	setEnv := r.setEnv()
	onSlow, ok := OnSlow(r.OnSlow)
	if !ok {
		return term.Spec{}, bad("on_slow %.20q must be lag or hold", r.OnSlow)
	}
	for _, text := range slices.Concat(r.Command, env, setEnv, []string{r.Cwd, r.Line}) {
		if strings.ContainsRune(text, 0) {
			return term.Spec{}, bad("%.40q has a NUL byte", text)
		}
	}
	for _, e := range setEnv {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return term.Spec{}, bad("set_env %.40q is not of the form NAME=value", e)
		}
	}
	command, err := commandOf(r)
	if err != nil {
		return term.Spec{}, err
	}
	lendTo, err := s.LendTo(r)
	if err != nil {
		return term.Spec{}, err
	}
	spec := term.Spec{
		Command: command, Env: environment(shell.Merge(env, setEnv)), Name: r.Name, Cwd: r.Cwd,
		Size: term.Size{Cols: r.Cols, Rows: r.Rows}, Private: r.Private, OnSlow: onSlow, LendTo: lendTo, Audience: r.Audience, Ports: r.Ports, Leased: r.Leased, Door: r.Door, Notice: notice,
		Feed: r.Feed, Attaches: r.Attaches,
	}
	if r.Name == "" || r.Door == policy.DoorACP { // over ACP a name is the command line, which the proxy has made
		spec.Suggest(nameOf(&r))
	}
	if r.ForwardBrowser {
		set, say := forwardBrowser(&r, spec.Env)
		if set != "" {
			spec.Env = shell.Merge(spec.Env, []string{set})
		}
		spec.AddNotice(say)
	}
	var denied string
	spec.Limits, denied = s.limits(ctx, r)
	spec.AddNotice(denied)
	if len(spec.Command) > 0 && r.Line == "" && !r.NoIntegration {
		err = s.integrate(&spec, r.Shell)
	}
	return spec, err
}

// umask is that of terminals for which nobody has set one.
const umask = 0o022

// limits returns the child's limits where they differ from the daemon's, and in words
// what an agent may not have.
func (s *Specs) limits(ctx context.Context, r Request) (_ proc.Limits, denied string) {
	if s.Own.IsZero() {
		return proc.Limits{}, "" // the system has none
	}
	asked := proc.Limits{}
	if r.Limits != nil {
		asked = *r.Limits
	}
	least := s.Own
	if asked.Umask == nil || r.ByAgent() {
		least.Umask = new(umask | s.Umask(ctx))
	}
	if asked.Umask == nil {
		asked.Umask = least.Umask
	}
	if r.ByAgent() {
		wanted := asked
		asked = asked.Stricter(least)
		if loose := wanted.Without(asked); !loose.IsZero() {
			denied = fmt.Sprintf("an agent cannot loosen limits: %s is not set", loose)
		}
	}
	return asked.Without(s.Own), denied
}

// commandOf returns the argv that the request stands for.
func commandOf(r Request) ([]string, error) {
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

// environment returns env without tether's own variables, above all credentials, and with
// the variables that programs on a terminal rely on.
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
	return &Error{Kind: Invalid, Message: fmt.Sprintf(format, args...)}
}

// integrate changes how the interactive shell of spec is started, so that it reports its
// commands.
func (s *Specs) integrate(spec *term.Spec, login bool) error {
	err := integrate.Shell(spec, s.Scripts, login)
	if err != nil && !errors.Is(err, integrate.ErrScripts) {
		return err
	}
	if err != nil || spec.Ended != nil {
		s.reportScripts(err)
	}
	return nil
}

// scriptsCause is the cause in status when shells run without integration.
const scriptsCause = "shell integration"

// reportScripts tells status that a shell starts without its scripts, because they could
// not be written, or that the fault is gone.
func (s *Specs) reportScripts(err error) {
	if err == nil {
		s.Report(scriptsCause, "")
		return
	}
	s.Logger.Warn().Err(err).Msg("a shell starts without integration")
	s.Report(scriptsCause, fmt.Sprintf("the last shell started without integration: %v", err))
}
