package host

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

// untoldTries counts the wrong tokens that other nodes have not been told of. It is safe
// for concurrent use.
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

// wrong counts a wrong token.
func (h *Host) wrong(remote string) {
	place := PlaceOf(remote)
	h.authLimit.Allow(place)
	h.untold.mu.Lock()
	defer h.untold.mu.Unlock()
	if h.untold.all != nil && len(h.untold.all) < maxNodePlaces {
		h.untold.all[place]++
	}
}

// taken returns the numbers of wrong tokens since the last call, by place.
func (g *untoldTries) taken() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.all
	g.all = map[string]int{}
	return all
}
