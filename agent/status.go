package agent

import (
	"os"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
)

// Status returns what the daemon knows at present; it asks no other program.
func (a *Agent) Status() localapi.Status {
	a.degraded.report(auditCause, a.policy.Degraded())
	a.reportLock()
	hosts := a.hosts.Status() // may report faults: before the list of faults is read
	s := localapi.Status{
		SchemaVersion: localapi.SchemaVersion, Running: true, Version: a.cfg.Version, Pid: os.Getpid(), Started: a.started,
		Socket: SocketPath(a.cfg.Dirs), Log: LogPath(a.cfg.Dirs), Hosts: hosts,
		Degraded: a.degraded.list(), Secrets: a.hosts.SecretStore(), Sandbox: a.sandboxStatus(), Unredacted: a.redactStatus(),
	}
	if proc.Root() {
		s.Root = &localapi.Root{Lends: a.settings.Lend.AsRoot}
	}
	if address := a.tcp.Load(); address != nil {
		s.TCP = *address
	}
	for _, r := range local.OpenAgents(a.cfg.Dirs.State).List() {
		s.Agents = append(s.Agents, localapi.AgentStatus{Name: r.Principal, Pid: r.Pid, Confined: r.Confined})
	}
	s.Logs.Bytes, s.Logs.MaxBytes = a.pool.Memory()
	s.History = a.historyStatus()
	running := map[term.ID]bool{}
	for _, h := range a.pool.As(term.User).List() {
		i := h.Info()
		running[i.ID] = i.Exit == nil
		if i.Exit == nil && i.Outlives {
			s.Holders.Alive++
		}
		if i.Exit == nil && i.Adopted != nil {
			s.Adopted = append(s.Adopted, localapi.AdoptedPane{Terminal: string(i.ID), Name: i.Name, Adopted: *i.Adopted})
		}
		local.CountTerminal(&s.Terminals, h)
	}
	s.Terminals.There = there(append(a.hosts.PrivateStatus(), s.Hosts...), running)
	return s
}

// there returns how many of the running terminals at least one host has now.
func there(hosts []localapi.HostStatus, running map[term.ID]bool) int {
	seen := map[string]bool{}
	for _, h := range hosts {
		for _, l := range h.Lent {
			if l.There && running[term.ID(l.ID)] {
				seen[l.ID] = true
			}
		}
	}
	return len(seen)
}
