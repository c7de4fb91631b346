package host

import "tether/ahp"

// owner identifies the owner of a terminal: by the name of its token, which stays when a
// machine is paired again. Clients with the host's own token, which several machines may
// use, are identified by their clientId.
type owner struct{ name, client string }

func ownerOf(cl *client) owner {
	if cl.principal.Name != "" {
		return owner{name: cl.principal.Name}
	}
	return owner{client: cl.id}
}

// formerLocked returns the former URI that a terminal of cl names, or "" if that URI
// belongs or belonged to another owner: otherwise its followers would be led to a
// stranger's terminal. A URI that the host does not know is accepted, because the host
// may have been restarted; see claimedLocked.
func (h *Host) formerLocked(cl *client, uri string) string {
	whose, known := h.former.Get(uri)
	if t := h.terminals[uri]; t != nil {
		whose, known = ownerOf(t.creator), true
	}
	if known && whose != ownerOf(cl) {
		return ""
	}
	return uri
}

// claimedLocked is called when an owner announces a URI. It removes the URI from
// terminals of other owners that have named it as their former one.
func (h *Host) claimedLocked(cl *client, uri string) {
	for _, t := range h.order {
		if t.state.Meta.Former == uri && ownerOf(t.creator) != ownerOf(cl) {
			t.state.Meta = ahp.TerminalMeta{Missing: t.state.Meta.Missing, Adopted: t.state.Meta.Adopted, Picture: t.state.Meta.Picture, Ports: t.state.Meta.Ports}
			t.touch(inCatalogue)
		}
	}
}
