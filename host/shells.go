package host

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"tether/ahp"
	"tether/screen"
)

// shellsPath is where administrators see the shells of the host, and end one.
const shellsPath = "/shells"

// Inspector is a ServerProcess that knows the programs in it. Its methods may ask the
// system about processes.
type Inspector interface {
	ServerProcess
	// Command is the started command.
	Command() []string
	// Foreground is the command line that has the terminal's keyboard, or a name for it;
	// empty if that is the shell itself.
	Foreground() string
}

// Shell is a shell of the host's as administrators see it.
type Shell struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Command    string     `json:"command,omitempty"`
	Owner      string     `json:"owner"` // its starter: the name of a token, a session, or the client's name for itself
	Cwd        string     `json:"cwd,omitempty"`
	Created    time.Time  `json:"created"`
	AloneSince *time.Time `json:"alone_since,omitempty"` // since when no client is there; nil while one is
	Foreground string     `json:"foreground,omitempty"`  // the program that runs in it; empty for the shell alone
	Exited     bool       `json:"exited,omitempty"`
}

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
func (h *Host) shells(p Principal) []Shell {
	h.mu.Lock()
	v := h.viewerLocked(p)
	var all []Shell
	var procs []ServerProcess
	for _, t := range h.order {
		if t.remote() {
			continue
		}
		i := t.describeLocked(0)
		s := Shell{ID: t.id, Name: screen.Clean(t.name), Owner: screen.Clean(h.starterLocked(t)), Cwd: screen.Clean(i.Cwd), Created: t.created.UTC(),
			Foreground: screen.Clean(head(i.Running)), Exited: i.Exit != nil}
		if since := h.aloneLocked(t); !since.IsZero() {
			since = since.UTC()
			s.AloneSince = &since
		}
		proc := t.proc
		if _, ok := h.seesLocked(&v, t); !ok { // another person's: its name and its owner
			s.Cwd, s.Foreground, proc = "", "", nil
		}
		all, procs = append(all, s), append(procs, proc)
	}
	h.mu.Unlock()
	for i := range all {
		if p, ok := procs[i].(Inspector); ok {
			all[i].Command = screen.Clean(strings.Join(p.Command(), " "))
			if !all[i].Exited {
				all[i].Foreground = cmp.Or(all[i].Foreground, screen.Clean(head(p.Foreground())))
			}
		}
	}
	return all
}

// starterLocked names the starter of a shell.
func (h *Host) starterLocked(t *terminal) string {
	if s := h.sessions[t.creator.id]; s != nil {
		for agent, of := range h.agentSessions {
			if of == s {
				return agent
			}
		}
		return s.state.Title
	}
	return t.creator.machineLocked()
}

// administrator decides which administrator a request is from, by token.
func (h *Host) administrator(r *http.Request) (Principal, *refusal) {
	r.Header.Del("Cookie") // a browser's cookie is an observer's in any case
	p, why := h.admit(r)
	switch {
	case why == nil && fromOtherPage(r):
		why = errForeignSite
	case why == nil && !p.may(rightShells):
		why = &refusal{status: http.StatusForbidden, text: "this needs an administrator's token"}
	}
	return p, why
}

// forAdministrators is a door with a list: GET lists, and DELETE of a path below ends one
// thing, if it is there.
func (h *Host) forAdministrators(path, what, one string, list func(Principal) any, end func(Principal, *http.Request, string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, why := h.administrator(r)
		if why != nil {
			h.refuse(w, r, why)
			return
		}
		name, below := strings.CutPrefix(r.URL.Path, path+"/")
		switch {
		case !below && r.Method == http.MethodGet:
			w.Header().Set("Cache-Control", "no-store")
			answerJSON(w, map[string]any{what: list(p)})
		case below && r.Method == http.MethodDelete && end(p, r, name):
			w.WriteHeader(http.StatusNoContent)
		case below && r.Method == http.MethodDelete:
			http.Error(w, "no such "+one, http.StatusNotFound)
		default:
			http.Error(w, "GET "+path+" lists "+what+", DELETE of a path below it ends a "+one, http.StatusMethodNotAllowed)
		}
	}
}

// shellsDoor lists and ends shells.
func (h *Host) shellsDoor() http.HandlerFunc {
	return h.forAdministrators(shellsPath, "shells", "shell", func(p Principal) any { return append([]Shell{}, h.shells(p)...) },
		func(p Principal, r *http.Request, id string) bool {
			return h.endShell(id, remote{name: r.RemoteAddr, principal: p}, "", nil)
		})
}

// endShell disposes of a shell of the host's, if it is there and is still wanted to end.
func (h *Host) endShell(id string, by remote, why string, wanted func(*terminal) bool) bool {
	h.mu.Lock()
	for _, t := range h.order {
		if t.id != id || t.remote() || wanted != nil && !wanted(t) {
			continue
		}
		h.disposeLocked(t, nil)
		proc, uri, client := t.proc, t.uri, t.creator.id
		h.mu.Unlock()
		proc.Kill()
		h.audit(AuditDisposed, by, AuditEvent{Client: client, Terminal: uri, Detail: why})
		h.log.Info().Str("terminal", uri).Str("reason", why).Msg("shell ended")
		return true
	}
	h.mu.Unlock()
	return false
}

// endLonely ends the shells of the host to which no client comes back within the grace
// time, until the host closes. The time counts while no client is there and nothing but
// the shell is in the foreground, as far as looking now and then tells.
func (h *Host) endLonely(grace time.Duration) {
	counts := map[*terminal]time.Time{} // since when the time counts
	h.every(min(max(grace/8, 100*time.Millisecond), 30*time.Second), func() {
		still := map[*terminal]time.Time{}
		for t, since := range h.lonely() {
			if h.busy(t) {
				since = time.Now()
			} else if before := counts[t]; before.After(since) { // something has run since then
				since = before
			}
			still[t] = since
			if time.Since(since) >= grace {
				h.endShell(t.id, remote{name: "tether-host"}, "no client came back", func(now *terminal) bool { return now == t && !h.aloneLocked(t).IsZero() })
			}
		}
		counts = still
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
	p, ok := t.proc.(Inspector)
	return ok && p.Foreground() != ""
}
