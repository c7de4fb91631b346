package webhook

import (
	"net/http"
	"time"
)

// SetTransport makes requests go through t instead of the network.
func (h *Hub) SetTransport(t http.RoundTripper) { h.client.Transport = t }

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
