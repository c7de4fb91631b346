// Package fetch makes one request to a server that runs in a terminal, for somebody who
// may only look, and bounds all that comes back.
//
//	page, err := fetch.Get(ctx, dial, fetch.Request{Port: 5173, Path: "/"})
//	text, links := page.Readable()
//
// The connection is always the caller's, to this machine's loopback interface: no name is
// looked up, and a redirect is followed only within the same server. Cookies and
// credentials never cross. [Request] says what may be asked for.
package fetch
