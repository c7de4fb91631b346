package terminals

import (
	"slices"

	"tether/host/rights"
)

// EndGrant ends all grants to a name, as in ahp.Grant, for the terminal with that id,
// whoever made them, for as long as it is lent to this host. It reports whether there was
// one. It takes the lock.
func (b *Book) EndGrant(id, to string) bool {
	g, ok := b.grantee(b.LookAtPeople(), to)
	if !ok {
		return false
	}
	uri := b.endGrant(id, to, g)
	if uri != "" && b.opts.People != nil {
		b.keepEnded(uri, to, g)
		b.LookAtPeople() // so that what a mirror's owner sends meanwhile does not restore it
	}
	return uri != ""
}

// endGrant is EndGrant without storing it for the next host. It returns the terminal's
// URI, "" if nothing was granted. The node that owns a mirror learns of it from the
// document of people, which all nodes share.
func (b *Book) endGrant(id, to string, g rights.Grantee) (uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.Every() {
		if t.ID == id && slices.Contains(t.MayWatch(), to) && !t.Creator.owns(g) {
			t.Withdrawn = append(t.Withdrawn, g)
			b.SetAudience(t, t.audience)
			return t.URI
		}
	}
	return ""
}

// keepEnded stores the end of a grant for the next host. It must not be called with the
// host's lock.
func (b *Book) keepEnded(uri, to string, g rights.Grantee) {
	if err := b.opts.People.Withdraw(uri, to, g); err != nil {
		b.log.Error().Err(err).Str("terminal", uri).Msg("the end of a grant is not kept: it is in force again after a restart of the host")
	}
}

// endedBefore returns the grantees whose grants for a terminal an administrator of
// an earlier host has ended. former is the URI that the terminal had there, "" if it is
// the same.
func (b *Book) endedBefore(uri, former string) []rights.Grantee {
	over := slices.Clone(b.Roster.Withdrawn[uri])
	if former == "" {
		return over
	}
	for _, g := range b.Roster.Withdrawn[former] {
		if name := b.Roster.NameOf(g); name != "" && !slices.Contains(over, g) {
			over = append(over, g)
			b.opts.Go(func() { b.keepEnded(uri, name, g) })
		}
	}
	return over
}

// owns reports whether g is the client's owner.
func (c *Client) owns(g rights.Grantee) bool {
	return g.Kind == rights.ToPerson && g.ID == c.Who.Owner
}
