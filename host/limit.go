package host

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	guessBurst = 10              // wrong tokens at once from one place
	guessEvery = 3 * time.Second // then one in this time
	maxGuesser = 4096            // places that are remembered
)

// authLimiter bounds how often one place can show a wrong token. A place is an address, or the /64 network of an IPv6 address. The zero
// value is ready to use; it is safe for concurrent use.
type authLimiter struct {
	mu    sync.Mutex
	known map[string]*guesser
	tell  map[string]int // wrong tokens that other nodes have not been told of, by place; nil: there are no others
}

// guesser is one place.
type guesser struct {
	left    *rate.Limiter // tries
	refused int           // number of refusals since it last had a try
}

// PlaceOf returns the place of a remote address, with or without a port. Limits of frequency count by place.
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

// blocked reports whether the place has no try left; first is true for the first refusal of a row, which should be logged.
func (g *authLimiter) blocked(remote string) (blocked, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.known[PlaceOf(remote)]
	if one == nil {
		return false, false
	}
	if one.left.Tokens() >= 1 {
		one.refused = 0
		return false, false
	}
	one.refused++
	return true, one.refused == 1
}

// wrong counts a wrong token.
func (g *authLimiter) wrong(remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	place := PlaceOf(remote)
	if g.tell != nil && len(g.tell) < maxNodePlaces {
		g.tell[place]++
	}
	g.takeLocked(place, 1)
}

// wrongElsewhere counts the wrong tokens that a place has sent to another node.
func (g *authLimiter) wrongElsewhere(place string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeLocked(PlaceOf(place), n)
}

// taken returns the numbers of wrong tokens since the last call, by place.
func (g *authLimiter) taken() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.tell
	g.tell = map[string]int{}
	return all
}

func (g *authLimiter) takeLocked(place string, n int) {
	one := g.known[place]
	if one == nil {
		if g.known == nil {
			g.known = make(map[string]*guesser)
		}
		if len(g.known) >= maxGuesser {
			g.forgetLocked()
		}
		one = &guesser{left: rate.NewLimiter(rate.Every(guessEvery), guessBurst)}
		g.known[place] = one
	}
	for range min(n, guessBurst) {
		one.left.Allow()
	}
}

// forgetLocked makes room: it removes places without recent wrong tokens and, if that is not enough, any places. It removes a quarter of
// all at a time, so that a flood of places does not cost a search for each.
func (g *authLimiter) forgetLocked() {
	for place, one := range g.known {
		if one.left.Tokens() >= guessBurst {
			delete(g.known, place)
		}
	}
	for place := range g.known {
		if len(g.known) < maxGuesser*3/4 {
			return
		}
		delete(g.known, place)
	}
}
