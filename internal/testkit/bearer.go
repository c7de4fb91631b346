package testkit

import "net/http"

// Bearer is a token that an HTTP client shows with each request; "" shows none.
type Bearer string

// RoundTrip implements [http.RoundTripper] with [http.DefaultTransport]. It does not change the request.
func (b Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}
