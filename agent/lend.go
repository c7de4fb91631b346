package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"tether/agent/config"
	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/agent/start"
	"tether/agent/term"
	"tether/platform/proc"
)

// lendTo returns the hosts to which a terminal is lent as soon as it starts.
func (a *Agent) lendTo(r start.Request) ([]string, error) {
	if r.LendTo != nil || r.Private {
		for _, name := range r.LendTo {
			if !a.hosts.Has(name) {
				return nil, hosts.NotPaired(name)
			}
		}
		return r.LendTo, nil
	}
	host, ok := a.hosts.Default()
	if !ok {
		return nil, nil
	}
	q := config.Lending{Door: r.Door, Owner: "user", Host: host, Dirs: pathsOf(r.Cwd), Root: proc.Root()}
	if r.ByAgent() {
		q.Owner = "agent"
	}
	if a.settings.Lend.Effect(q, home()) != config.LendYes {
		return nil, nil
	}
	return []string{host}, nil
}

// mayLend is term.Options.MayLend: it refuses terminals that the configuration forbids to
// lend, to every door.
func (a *Agent) mayLend(i term.Info, host string) error {
	if !a.hosts.Takes(host, i.ID) {
		return &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("the private host %s is for another terminal", host)}
	}
	q := config.Lending{Door: i.Door, Owner: "user", Host: host, Dirs: append(pathsOf(i.Cwd), pathsOf(i.StartCwd)...)}
	if i.Owner.Role == term.RoleAgent {
		q.Owner = "agent"
	}
	if a.settings.Lend.Effect(q, home()) != config.LendNever {
		return nil
	}
	return &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("a lend rule forbids lending this terminal to %s", host),
		Hint: "see [[lend.rules]] in the file that tether config path names"}
}

// redactCause is the cause in status when values cannot be redacted.
const redactCause = "redaction"

// recovered logs a bug (a panic) that a terminal's output has triggered, and reports it
// in status.
func (a *Agent) recovered(s term.Recovery) {
	a.log.Error().Str("terminal", string(s.ID)).Int("bytes", s.Bytes).Str("panic", s.Kind).Bytes("stack", s.Stack).Msg("a terminal's output ran into a bug")
	a.degraded.report("bug", fmt.Sprintf("a bug in tether: %d bytes of output of terminal %s, and all before them, cannot be shown; please report the bug: tether bugreport",
		s.Bytes, s.ID))
}

// unredacted is term.Options.Unredacted: it reports whether the actor, an agent of this
// machine, is shown secrets.
func (a *Agent) unredacted(actor term.Actor) bool {
	for _, p := range a.settings.Agents.Principals {
		if policy.Matches(p.Name, actor) {
			return p.Redact == config.RedactOff
		}
	}
	return !a.settings.Agents.Redact
}

// redactStatus returns which agents of this machine are shown secrets; nil if none is.
func (a *Agent) redactStatus() *localapi.Unredacted {
	u := localapi.Unredacted{All: !a.settings.Agents.Redact, Names: []string{}, Except: []string{}}
	for _, p := range a.settings.Agents.Principals {
		switch {
		case u.All && p.Redact == config.RedactOn:
			u.Except = append(u.Except, p.Name)
		case !u.All && p.Redact == config.RedactOff:
			u.Names = append(u.Names, p.Name)
		}
	}
	if !u.All && len(u.Names) == 0 {
		return nil
	}
	return &u
}

// openOutward sets how the pool shows its terminals to hosts and agents.
func (a *Agent) openOutward(o *term.Options) {
	o.Outward, o.Unredacted = a.shown, a.unredacted
	o.Secrets = func(env []string) []string { return redact.Values(env, a.settings.Lend.RedactEnv) }
	o.Trouble = func(what string) { a.degraded.report(redactCause, what) }
	o.Recovered = a.recovered
}

// pathsOf returns the names of a directory: the cleaned name as given, and the one with
// links followed if that differs.
func pathsOf(dir string) []string {
	if dir == "" {
		return nil
	}
	names := []string{filepath.Clean(dir)}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != names[0] {
		names = append(names, real)
	}
	return names
}

// home is the person's home directory, "" if it is not known.
func home() string {
	dir, _ := os.UserHomeDir()
	return dir
}
