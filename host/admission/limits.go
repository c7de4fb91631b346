package admission

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"tether/internal/bounded"
)

const (
	guessBurst = 10              // wrong tokens at once from one place
	guessEvery = 3 * time.Second // then one in this time
)

// newTries returns a limiter of wrong tokens, by place.
func newTries() bounded.Rates { return bounded.Rates{Burst: guessBurst, Every: guessEvery} }

// MaxPlaces is how many places of wrong tokens other nodes are told of at a time.
const MaxPlaces = 256

// untoldTries counts the wrong tokens that other nodes have not been told of.
type untoldTries struct {
	mu  sync.Mutex
	all map[string]int // by place; nil: there are no other nodes
}

// PlaceOf returns the place of a remote address, with or without a port. Limits of
// frequency count by place.
func PlaceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is6() && !ip.IsLoopback() {
		if p, err := ip.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// Wrong counts a wrong token.
func (c *Checks) Wrong(remote string) {
	place := PlaceOf(remote)
	c.tokens.Allow(place)
	c.untold.mu.Lock()
	defer c.untold.mu.Unlock()
	if c.untold.all != nil && len(c.untold.all) < MaxPlaces {
		c.untold.all[place]++
	}
}

// Untold returns the numbers of wrong tokens since the last call, by place, for other
// nodes.
func (c *Checks) Untold() map[string]int {
	c.untold.mu.Lock()
	defer c.untold.mu.Unlock()
	all := c.untold.all
	c.untold.all = map[string]int{}
	return all
}

// Told counts the wrong tokens that another node has been sent, by place.
func (c *Checks) Told(wrong map[string]int) {
	for place, n := range wrong {
		for range min(n, guessBurst) {
			c.tokens.Allow(PlaceOf(place))
		}
	}
}

// Guessing returns a refusal for a place that has sent too many wrong tokens, nil for
// others. Only the first refusal of a row is logged.
func (c *Checks) Guessing(remote string) *Refusal { return limited(&c.tokens, remote) }

// GuessingLinks is Guessing for links, which have a limit of their own, because any page
// can send a browser to one.
func (c *Checks) GuessingLinks(remote string) *Refusal { return limited(&c.links, remote) }

// WrongLink counts a link that does not work.
func (c *Checks) WrongLink(remote string) { c.links.Allow(PlaceOf(remote)) }

func limited(g *bounded.Rates, remote string) *Refusal {
	spent, first := g.Spent(PlaceOf(remote))
	if !spent {
		return nil
	}
	why := *errGuessing
	why.Quiet = !first
	return &why
}
