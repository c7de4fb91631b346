package agent

import (
	"context"
	"path/filepath"
	"slices"

	"tether/agent/local"
	"tether/agent/notify"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/events"
)

// notifyCause is the cause in status when the URLs of notifications cannot be read.
const notifyCause = "notify"

// newNotifier returns what tells the person about terminals by the rules of [[notify]].
// server is set before it runs.
func (a *Agent) newNotifier(server **local.Server) *notify.Notifier {
	receivers, err := notify.OpenReceivers(filepath.Join(a.cfg.Dirs.State, "receivers.json"), a.hosts)
	if err != nil {
		a.degraded.report(notifyCause, err.Error())
	}
	return notify.New(notify.Options{
		Rules: a.settings.Notify, Machine: machineName(), Home: home(), Receivers: receivers, Desktop: a.cfg.Notify,
		Events: func() (*events.Engine, func()) { return (*server).PersonEvents() },
		Find:   a.notifyTerminal, Hosts: a.notifyHosts, Report: a.degraded.report, Keep: filepath.Join(a.cfg.Dirs.State, "notify.json"), TLS: a.cfg.NotifyTLS,
		Audit: func(what string) {
			a.policy.Audit(policy.Event{Type: policy.EventNotify, Actor: term.User, Detail: what})
		},
	})
}

// runNotifier runs the notifier until the returned function is called.
func (a *Agent) runNotifier(ctx context.Context, t *notify.Notifier) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.Run(ctx)
	}()
	return func() {
		stop()
		<-done
	}
}

// notifyTerminal returns what the rules must know of a terminal.
func (a *Agent) notifyTerminal(id string) (notify.Terminal, bool) {
	h, err := a.pool.As(term.User).Terminal(term.ID(id))
	if err != nil {
		return notify.Terminal{}, false
	}
	i := h.Info()
	t := notify.Terminal{Name: i.Name, Owner: "user", Private: i.Private, Attached: i.Attached > 0, Typed: i.Typed,
		Dirs: slices.Concat(pathsOf(i.Cwd), pathsOf(i.StartCwd))}
	if i.Owner.Role == term.RoleAgent {
		t.Owner = "agent"
	}
	return t, true
}

// notifyHosts returns the states of the paired hosts.
func (a *Agent) notifyHosts() []notify.Host {
	var all []notify.Host
	for _, h := range a.hosts.Status() {
		all = append(all, notify.Host{Name: h.Name, Online: h.State == "online", Why: a.mask(h.Error, nil)})
	}
	return all
}
