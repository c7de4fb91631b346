package host

import "tether/ahp"

// mostFormer is how many URIs of terminals that are gone the host remembers the owner of.
const mostFormer = 4096

// formerOwners remembers whose terminals were that are gone, the newest ones. The zero value is ready. Guarded by the host's mutex.
type formerOwners struct {
	owners map[string]owner
	order  []string // URIs, the oldest first
}

// owner is the owner of a terminal: the name of a token, which stays when a machine is paired again, or the clientId for clients with the
// host's own token, which several machines may use.
type owner struct{ name, client string }

func ownerOf(cl *client) owner {
	if cl.principal.Name != "" {
		return owner{name: cl.principal.Name}
	}
	return owner{client: cl.id}
}

// add remembers a terminal that is gone.
func (f *formerOwners) add(uri string, o owner) {
	if f.owners == nil {
		f.owners = map[string]owner{}
	}
	if _, known := f.owners[uri]; !known {
		f.order = append(f.order, uri)
	}
	f.owners[uri] = o
	if len(f.order) > mostFormer {
		delete(f.owners, f.order[0])
		f.order = f.order[1:]
	}
}

// formerLocked is the former URI that a terminal of cl names, "" if that is, or was, another owner's: its followers would be led to a
// stranger's. A URI that the host does not know is believed, since the host may have been restarted; see claimedLocked.
func (h *Host) formerLocked(cl *client, uri string) string {
	whose, known := h.former.owners[uri]
	if t := h.terminals[uri]; t != nil {
		whose, known = ownerOf(t.creator), true
	}
	if known && whose != ownerOf(cl) {
		return ""
	}
	return uri
}

// claimedLocked takes a URI that its owner has announced away from terminals of others that have named it before as their former one.
func (h *Host) claimedLocked(cl *client, uri string) {
	for _, t := range h.order {
		if t.state.Meta.Former == uri && ownerOf(t.creator) != ownerOf(cl) {
			t.state.Meta = ahp.TerminalMeta{Missing: t.state.Meta.Missing}
			h.rowChangedLocked(t)
			h.listChangedLocked(t)
		}
	}
}
