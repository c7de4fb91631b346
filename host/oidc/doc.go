// Package oidc lets people log in at a host with their company's identity provider, by OpenID Connect.
//
//	p, err := oidc.New(oidc.Options{Issuer: issuer, ClientID: id, Secret: secret, PublicURL: url, People: people})
//	go p.Run(ctx)                       // renews sessions
//	host.Options{Access: p}             // a session's token lets its person in
//	mux.Handle(oidc.Path, p)            // the browser's way there and back, and the provider's logouts
//
// A [Session] is one login of one person. The host alone speaks to the provider: it exchanges the code, and from then on asks again at
// most every ten minutes whether the person and the groups still are what they were. Browsers and the command line hold a token of the
// host's, never one of the provider's.
//
// Whoever asks here has shown nothing yet, so nothing is kept for them: what a browser needs between the way there and the way back is
// sealed in a cookie of its own.
package oidc
