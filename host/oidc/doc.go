// Package oidc lets people log in at a host with their company's identity provider, by
// OpenID Connect.
//
//	p, err := oidc.New(oidc.Options{Issuer: issuer, ClientID: id, Secret: secret, PublicURL: url, People: people})
//	go p.Run(ctx)                       // renews sessions
//	host.Options{Access: p}             // a session's token lets its person in
//	mux.Handle(oidc.Path, p)            // the browser's way there and back, and the provider's logouts
//
// A [Session] is one login of one person. Only the host talks to the provider: it
// exchanges the code, and afterwards asks at least every ten minutes whether the person
// and the groups are still the same. Browsers and the command line have a token of the
// host, never one of the provider.
//
// At a host of several nodes one of them, the leader, does that for all, see
// Options.Shared.
//
// On their way to the provider, browsers are not authenticated yet, so the host keeps no
// state for them: it is sealed in a cookie until they return.
package oidc
