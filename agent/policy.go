package agent

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/platform/dirs"
)

// AuditPath is the current file of the audit log.
func AuditPath(d dirs.Dirs) string { return filepath.Join(d.State, "audit.jsonl") }

// auditCause is the cause in status when the audit log cannot be written.
const auditCause = "audit log"

// policyOptions are the policy's options from the configuration, for the daemon that
// writes the log.
func (c *Config) policyOptions(mask func(text string, env []string) string) policy.Options {
	o := policy.Options{AuditPath: AuditPath(c.Dirs), Mask: mask}
	if c.Settings != nil {
		o.Config = c.Settings.Policy
	}
	return o
}

// mask masks in a text everything that hosts are not shown: credentials of known forms,
// the configured patterns, and values of variables of terminals' environment, and of env.
// The first call may take a moment.
func (a *Agent) mask(s string, env []string) string {
	for _, value := range redact.Values(slices.Concat(env, os.Environ(), a.login().Known()), a.settings.Lend.RedactEnv) {
		s = strings.ReplaceAll(s, value, "***")
	}
	return a.shown.Redact(s)
}

// auditStart records the daemon's start and the rules that are in force: their number,
// and a sum that shows whether they have changed since another start. The rules
// themselves may contain private names.
func (a *Agent) auditStart() {
	p := a.settings.Policy
	rules, err := json.Marshal([]any{p, a.settings.Lend})
	if err != nil {
		a.log.Error().Err(err).Msg("sum of the rules") // a bug: a configuration is plain values
	}
	sum := sha256.Sum256(rules)
	a.policy.Audit(policy.Event{Type: policy.EventStart, Detail: fmt.Sprintf("version %s; block list %s, default %s, %d rules, %d principals; sum of policy and lend %x",
		a.cfg.Version, p.BlockList, p.Default, len(p.Rules), len(p.Principals), sum[:8])})
}

// auditEnd notes the end and closes the log.
func (a *Agent) auditEnd() {
	a.policy.Audit(policy.Event{Type: policy.EventStop})
	if err := a.policy.Close(); err != nil {
		a.log.Error().Err(err).Msg("audit log")
	}
}

// acts maps the kinds of the pool's acts to events of the audit log.
var acts = map[term.ActKind]policy.EventType{
	term.ActKill: policy.EventKill, term.ActSignal: policy.EventSignal, term.ActLend: policy.EventLend, term.ActUnlend: policy.EventUnlend,
	term.ActDispose: policy.EventDispose, term.ActPromote: policy.EventPromote, term.ActRefusal: policy.EventRefusal, term.ActExit: policy.EventExit,
}

// acted records an action on a terminal, or a refused one.
func (a *Agent) acted(act term.Act) {
	ev := policy.Event{Type: acts[act.Kind], Actor: act.Actor, Terminal: act.Terminal.ID, Host: act.Host, Detail: act.Detail}
	switch {
	case act.Kind == term.ActExit && act.Terminal.Exit != nil:
		ev.Detail = fmt.Sprintf("code %d", act.Terminal.Exit.Code)
		if act.Terminal.Exit.Signal != "" {
			ev.Detail = "by signal " + act.Terminal.Exit.Signal
		}
	case act.Err != nil && act.Kind != term.ActRefusal:
		ev.Detail = act.Err.Error()
		ev.Type = policy.EventFailed
	}
	a.policy.Audit(ev)
}

// adopted counts an agent's terminal that outlived an earlier daemon.
func (a *Agent) adopted(id term.ID) {
	if h, err := a.pool.As(term.User).Find(string(id)); err == nil {
		a.policy.Adopt(h)
	}
}

// auditUp records that a host has let this machine in: from then on its lent terminals
// may be watched there. more counts the times since the last such record.
func (a *Agent) auditUp(name string, more int) {
	ev := policy.Event{Type: policy.EventConnect, Host: name}
	if more > 0 {
		ev.Detail = fmt.Sprintf("and %d times more since this was written last", more)
	}
	a.policy.Audit(ev)
}

// auditToken notes that a token for the local door was made, renewed or revoked.
func (a *Agent) auditToken(act local.TokenAct, principal string) {
	a.policy.Audit(policy.Event{Type: policy.EventToken, Actor: term.User, Detail: fmt.Sprintf("%s for %s", act, principal)})
}
