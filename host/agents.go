package host

import (
	"net/http"
	"slices"

	"tether/agenttools"
	"tether/host/agents"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/host/shells"
	"tether/mcp"
)

// openAgents makes the door for agents.
func (h *Host) openAgents() {
	o := agents.Options{
		Host: forAgents{h}, Checks: h.checks, Memory: h.messages, Names: &h.names, Webhooks: h.opts.Webhooks,
		Version: h.opts.Info.Version, Max: sessions.MaxAgents, MaxFrame: h.opts.MaxFrame, StallTime: h.opts.StallTime, Done: h.ctx,
		Ask: h.ask, Gate: h.gate, Audit: h.auditRequest, Bug: h.toolBug, Log: h.log,
	}
	if h.opts.Nodes != nil {
		o.Node = h.opts.Nodes.ID()
	}
	h.agents = agents.New(o)
}

// forAgents implements agents.Host.
type forAgents struct{ h *Host }

// Terminals implements agents.Host.
func (a forAgents) Terminals(p rights.Principal) agenttools.Terminals {
	var all agenttools.Terminals = a.h.terminals.View(&p)
	if a.inSessions(p) {
		all = ownTerminals{all, a.h, p.Name}
	}
	return agentView{a.h.terminals.Watch(all, p), a.h}
}

func (a forAgents) inSessions(p rights.Principal) bool {
	return a.h.opts.Sessions && p.May(rights.Sessions)
}

// Hold implements agents.Host.
func (a forAgents) Hold(p rights.Principal) (letGo func()) {
	h := a.h
	h.mu.Lock()
	defer h.mu.Unlock()
	use := h.terminals.Hold(h.terminals.Roster.Viewer(p))
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.terminals.LetGo(use)
	}
}

// Tools implements agents.Host.
func (a forAgents) Tools(p rights.Principal) (tools func() []mcp.Extra, guide string) {
	if !a.inSessions(p) {
		return nil, ""
	}
	var own []mcp.Extra
	guide = sessions.Guide
	if a.h.shellTools != nil {
		if own = a.h.shellTools.For(p); own != nil {
			guide += "\n" + shells.Guide
		}
	}
	return func() []mcp.Extra { return slices.Concat(own, a.h.callers.Tools(p)) }, guide
}

// Heard implements agents.Host.
func (a forAgents) Heard(p rights.Principal) { a.h.callers.Here(p) }

// auditRequest records what a principal has done by a request.
func (h *Host) auditRequest(kind string, r *http.Request, by rights.Principal, ev rights.AuditEvent) {
	h.audit(kind, remote{name: r.RemoteAddr, principal: by}, ev)
}

// toolBug logs a panic in a call of a tool.
func (h *Host) toolBug(tool string, stack []byte) {
	h.log.Error().Str("tool", tool).Bytes("stack", stack).Msg("a call of a tool ran into a bug")
}
