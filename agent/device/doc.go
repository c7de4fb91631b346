// Package device is this machine's side of pairing with a host by keys, and of the
// sessions that follow: docs/PROTOCOL.md.
//
//	c := device.New(endpoint, key)
//	p, err := c.Begin(ctx, "laptop")
//	fmt.Println(p.Code)
//	principal, err := p.Wait(ctx)
//	…
//	token, err := c.Session(ctx, hostKey)
//
// A host that does not speak the protocol gives ErrNotOffered; a link to it then uses a
// token.
package device
