package host

import (
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/shells"
	"tether/host/terminals"
	"tether/screen"
)

// aloneLocked returns since when a shell of the host's has no client: neither its
// starter, nor its holder, nor a watcher. It is zero while one is there, and for the
// shell of a session, which ends with that.
func (h *Host) aloneLocked(t *terminals.Terminal) time.Time {
	holder := h.terminals.Clients[t.State.Claim.ClientID]
	if t.State.Claim.Kind == ahp.ClaimSession || t.Creator.Link != nil || holder != nil && holder.Link != nil || t.Observers() > 0 {
		return time.Time{}
	}
	since := t.Created
	for _, at := range []time.Time{t.Creator.Left, t.Unwatched} {
		if at.After(since) {
			since = at
		}
	}
	if holder != nil && holder.Left.After(since) {
		since = holder.Left
	}
	return since
}

// shells lists the shells of the host, oldest first. The programs in them are shown only
// to those who see them.
func (h *Host) shells(p rights.Principal) []shells.Shell {
	h.mu.Lock()
	v := h.terminals.Roster.Viewer(p)
	all := []shells.Shell{}
	for _, t := range h.terminals.Listed {
		if t.Remote() {
			continue
		}
		i := t.Describe(0)
		s := shells.Shell{ID: t.ID, Name: screen.Clean(t.Name), Owner: screen.Clean(h.starterLocked(t)), Cwd: screen.Clean(i.Cwd), Created: t.Created.UTC(),
			Foreground: screen.Clean(terminals.Head(i.Running)), Exited: i.Exit != nil, Process: t.Proc()}
		if since := h.aloneLocked(t); !since.IsZero() {
			since = since.UTC()
			s.AloneSince = &since
		}
		if _, ok := v.Sees(t.Subject, h.terminals.Roster); !ok { // another person's: its name and its owner
			s.Cwd, s.Foreground, s.Process = "", "", nil
		}
		all = append(all, s)
	}
	h.mu.Unlock()
	return shells.Inspect(all)
}

// starterLocked names the starter of a shell.
func (h *Host) starterLocked(t *terminals.Terminal) string {
	if name, ok := h.sessions.Name(t.Creator.ID()); ok {
		return name
	}
	return t.Creator.Machine()
}

// endShell disposes of a shell of the host's, if it is there and is still wanted to end.
func (h *Host) endShell(id string, by remote, why string, wanted func(*terminals.Terminal) bool) bool {
	h.mu.Lock()
	for _, t := range h.terminals.Listed {
		if t.ID != id || t.Remote() || wanted != nil && !wanted(t) {
			continue
		}
		h.terminals.Dispose(t, nil)
		proc, uri, client := t.Proc(), t.URI, t.Creator.ID()
		h.mu.Unlock()
		proc.Kill()
		h.audit(rights.AuditDisposed, by, rights.AuditEvent{Client: client, Terminal: uri, Detail: why})
		h.log.Info().Str("terminal", uri).Str("reason", why).Msg("shell ended")
		return true
	}
	h.mu.Unlock()
	return false
}

// endLonely ends the shells of the host to which no client comes back, until the host
// closes.
func (h *Host) endLonely(grace time.Duration) {
	shells.EndLonely(h.ctx, grace, h.lonely, h.busy, func(t *terminals.Terminal) {
		h.endShell(t.ID, remote{name: "tether-host"}, "no client came back", func(now *terminals.Terminal) bool { return now == t && !h.aloneLocked(t).IsZero() })
	})
}

// lonely returns the shells of the host without a client, and since when that is so.
func (h *Host) lonely() map[*terminals.Terminal]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[*terminals.Terminal]time.Time{}
	for _, t := range h.terminals.Listed {
		if t.Remote() {
			continue
		}
		if since := h.aloneLocked(t); !since.IsZero() {
			all[t] = since
		}
	}
	return all
}

// busy reports whether something runs in the foreground of a shell.
func (h *Host) busy(t *terminals.Terminal) bool {
	h.mu.Lock()
	exited, running := t.State.Lifecycle.Exited(), t.Describe(0).Running != ""
	h.mu.Unlock()
	if exited || running {
		return !exited
	}
	p, ok := t.Proc().(shells.Inspector)
	return ok && p.Foreground() != ""
}
