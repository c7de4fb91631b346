package agent

import (
	"cmp"
	"os"
	"time"

	"tether/agent/local"
	"tether/agent/term"
	"tether/pairing"
	"tether/platform/proc"
)

// Status is what is known at this moment; nobody is asked.
func (a *Agent) Status() local.Status {
	a.reportPolicy()
	a.reportAside()
	a.reportLock()
	s := local.Status{
		SchemaVersion: local.SchemaVersion, Running: true, Version: a.cfg.Version, Pid: os.Getpid(), Started: a.started,
		Socket: SocketPath(a.cfg.Dirs), Log: LogPath(a.cfg.Dirs), Hosts: []local.HostStatus{},
		Degraded: a.degraded.list(), Secrets: a.hosts.place(), Sandbox: a.sandboxStatus(),
	}
	if proc.Root() {
		s.Root = &local.Root{Lends: a.settings.Lend.AsRoot}
	}
	s.Holders.Off = a.cfg.NoHolders
	if a.holders == nil {
		s.Holders.Off = cmp.Or(s.Holders.Off, "this daemon was started without")
	}
	if address := a.tcp.Load(); address != nil {
		s.TCP = *address
	}
	for _, r := range local.OpenAgents(a.cfg.Dirs.State).List() {
		s.Agents = append(s.Agents, local.AgentStatus{Name: r.Principal, Pid: r.Pid, Confined: r.Confined})
	}
	s.Logs.Bytes, s.Logs.MaxBytes = a.pool.Memory()
	running := map[term.ID]bool{}
	for _, h := range a.pool.As(term.User).List() {
		i := h.Info()
		running[i.ID] = i.Exit == nil
		switch {
		case i.Exit != nil:
		case i.Held:
			s.Holders.Alive++
		default:
			s.Holders.InDaemon++
		}
		s.Terminals.Add(i)
	}
	for _, h := range a.hosts.list() {
		s.Hosts = append(s.Hosts, a.hostStatus(h))
	}
	s.Terminals.There = there(s.Hosts, running)
	return s
}

// there is how many of the running terminals at least one host has now.
func there(hosts []local.HostStatus, running map[term.ID]bool) int {
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

func (a *Agent) hostStatus(h host) local.HostStatus {
	first, ok := a.hosts.byDefault()
	s := local.HostStatus{Name: h.Name, URL: h.URL, Pin: h.Pin, Credential: h.credential(), Default: ok && first.Name == h.Name, Lent: []local.Lent{}}
	if h.HostKey != nil {
		s.HostKey = pairing.Fingerprint(h.HostKey)
	}
	link, ok := a.links.status(h.Name)
	if !ok {
		return s // being paired or unpaired just now
	}
	s.State, s.Since, s.DownSince = string(link.State), link.Since, link.DownSince
	s.Unacked, s.Gaps, s.GapBytes = link.Unacked, link.Gaps, link.GapBytes
	if !link.NextRetry.IsZero() {
		s.NextRetry = time.Now().Add(time.Until(link.NextRetry)) // also when the wall clock was set meanwhile
	}
	s.Tools = a.toolsStatus(h)
	s.Protocol, s.Server, s.Resume, s.Refused = link.Version, link.Server, link.Resume, link.Refused
	if link.ClockSkew.Abs() > time.Second { // which is what Date and the way here cannot tell
		s.ClockSkew = int64(link.ClockSkew / time.Second)
	}
	if link.Err != nil {
		s.Error = link.Err.Error()
	}
	for _, t := range link.Terminals {
		s.Lent = append(s.Lent, local.Lent{ID: string(t.ID), URI: t.URI, Unacked: t.Unacked, Lost: t.Lost, There: t.There, Problem: t.Problem, Observers: t.Observers})
	}
	return s
}
