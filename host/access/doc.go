// Package access keeps the tokens of a host's users: hashed, each for one principal in one role, perhaps with an expiry.
//
//	tokens, err := access.Open(filepath.Join(state, "host-tokens.json"))
//	go tokens.Run(ctx)
//	h := host.New(host.Options{Access: tokens})
//
// Other processes, the commands that create and revoke tokens, also change the file while a host runs. So a host reads it every second, and
// before it refuses anybody. It holds no token, only hashes: a token is 256 random bits, so a plain hash is as good as a slow one.
//
// Next to it are files that the host alone changes: the owners of clientIds (Owners), and logged-in browsers (Logins).
package access
