package host

import (
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/shells"
	"tether/screen"
)

// aloneLocked returns since when a shell of the host's has no client: neither its
// starter, nor its holder, nor a watcher. It is zero while one is there, and for the
// shell of a session, which ends with that.
func (h *Host) aloneLocked(t *terminal) time.Time {
	holder := h.clients[t.state.Claim.ClientID]
	if t.state.Claim.Kind == ahp.ClaimSession || t.creator.conn != nil || holder != nil && holder.conn != nil || t.observersLocked() > 0 {
		return time.Time{}
	}
	since := t.created
	for _, at := range []time.Time{t.creator.left, t.unwatched} {
		if at.After(since) {
			since = at
		}
	}
	if holder != nil && holder.left.After(since) {
		since = holder.left
	}
	return since
}

// shells lists the shells of the host, oldest first. The programs in them are shown only
// to those who see them.
func (h *Host) shells(p rights.Principal) []shells.Shell {
	h.mu.Lock()
	v := h.roster.Viewer(p)
	all := []shells.Shell{}
	for _, t := range h.order {
		if t.remote() {
			continue
		}
		i := t.describeLocked(0)
		s := shells.Shell{ID: t.id, Name: screen.Clean(t.name), Owner: screen.Clean(h.starterLocked(t)), Cwd: screen.Clean(i.Cwd), Created: t.created.UTC(),
			Foreground: screen.Clean(head(i.Running)), Exited: i.Exit != nil, Process: t.proc()}
		if since := h.aloneLocked(t); !since.IsZero() {
			since = since.UTC()
			s.AloneSince = &since
		}
		if _, ok := v.Sees(t.subject, h.roster); !ok { // another person's: its name and its owner
			s.Cwd, s.Foreground, s.Process = "", "", nil
		}
		all = append(all, s)
	}
	h.mu.Unlock()
	return shells.Inspect(all)
}

// starterLocked names the starter of a shell.
func (h *Host) starterLocked(t *terminal) string {
	if name, ok := h.sessions.Name(t.creator.id); ok {
		return name
	}
	return t.creator.Machine()
}

// endShell disposes of a shell of the host's, if it is there and is still wanted to end.
func (h *Host) endShell(id string, by remote, why string, wanted func(*terminal) bool) bool {
	h.mu.Lock()
	for _, t := range h.order {
		if t.id != id || t.remote() || wanted != nil && !wanted(t) {
			continue
		}
		h.disposeLocked(t, nil)
		proc, uri, client := t.proc(), t.uri, t.creator.id
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
	shells.EndLonely(h.ctx, grace, h.lonely, h.busy, func(t *terminal) {
		h.endShell(t.id, remote{name: "tether-host"}, "no client came back", func(now *terminal) bool { return now == t && !h.aloneLocked(t).IsZero() })
	})
}

// lonely returns the shells of the host without a client, and since when that is so.
func (h *Host) lonely() map[*terminal]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[*terminal]time.Time{}
	for _, t := range h.order {
		if t.remote() {
			continue
		}
		if since := h.aloneLocked(t); !since.IsZero() {
			all[t] = since
		}
	}
	return all
}

// busy reports whether something runs in the foreground of a shell.
func (h *Host) busy(t *terminal) bool {
	h.mu.Lock()
	exited, running := t.state.Lifecycle.Exited(), t.describeLocked(0).Running != ""
	h.mu.Unlock()
	if exited || running {
		return !exited
	}
	p, ok := t.proc().(shells.Inspector)
	return ok && p.Foreground() != ""
}
