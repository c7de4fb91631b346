// Package access keeps the tokens of a host's users: hashed, each for one principal in
// one role, with or without an expiry.
//
//	tokens, err := access.Open(access.File(filepath.Join(state, "host-tokens.json")))
//	go tokens.Run(ctx)
//	h := host.New(host.Options{Access: tokens})
//
// Other processes, the commands that create and revoke tokens, also change the file while
// a host runs. So a host checks it every second, and before it refuses anybody. The file
// has no tokens, only their hashes: a token is 256 random bits, so a fast hash protects
// it as well as a slow one.
//
// Next to it are files that only the host changes: the owners of clientIds (Owners), and
// logged-in browsers (Logins).
package access
