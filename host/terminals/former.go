package terminals

import (
	"tether/ahp"
)

// owner identifies the owner of a terminal: by the name of its token, which stays when a
// machine is paired again. Clients with the host's own token, which several machines may
// use, are identified by their clientId.
type owner struct{ name, client string }

func ownerOf(cl *Client) owner {
	if cl.Who.Name != "" {
		return owner{name: cl.Who.Name}
	}
	return owner{client: cl.id}
}

// formerOf returns the former URI that a terminal of cl names, or "" if that URI
// belongs or belonged to another owner: otherwise its followers would be led to a
// stranger's terminal. A URI that the host does not know is accepted, because the host
// may have been restarted; see claimed.
func (b *Book) formerOf(cl *Client, uri string) string {
	whose, known := b.former.Get(uri)
	if t := b.ByURI[uri]; t != nil {
		whose, known = ownerOf(t.Creator), true
	}
	if known && whose != ownerOf(cl) {
		return ""
	}
	return uri
}

// claimed is called when an owner announces a URI. It removes the URI from terminals
// of other owners that have named it as their former one.
func (b *Book) claimed(cl *Client, uri string) {
	for _, t := range b.Listed {
		if t.State.Meta.Former == uri && ownerOf(t.Creator) != ownerOf(cl) {
			t.State.Meta = ahp.TerminalMeta{Missing: t.State.Meta.Missing, Adopted: t.State.Meta.Adopted, Picture: t.State.Meta.Picture, Ports: t.State.Meta.Ports}
			t.touch(inCatalogue)
		}
	}
}
