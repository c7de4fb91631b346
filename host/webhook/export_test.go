package webhook

import (
	"net/http"
	"net/netip"
	"time"
)

// SetTransport makes requests go through t instead of the network.
func (h *Hub) SetTransport(t http.RoundTripper) { h.client.Transport = t }

// CheckURL is guard.check.
func CheckURL(text string, allow ...netip.Prefix) (string, error) { return guard{allow}.check(text) }

// AddressAllowed is guard.address.
func AddressAllowed(ip netip.Addr, allow ...netip.Prefix) bool { return guard{allow}.address(ip) }

// SignaturesOf signs with one secret.
func SignaturesOf(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := secretKey(secret)
	return signatures([][]byte{key}, id, at, body), err
}

// Count is the number of subscriptions.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}
