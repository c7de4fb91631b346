package oidc

import "net/http"

// SetTransport makes the provider's requests go through t, with their bounds.
func (p *Provider) SetTransport(t http.RoundTripper) { p.client.Transport = short{t} }

// Sessions is the number of sessions.
func (p *Provider) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

// MaxOfOne is exported for tests.
const MaxOfOne = maxOfOne
