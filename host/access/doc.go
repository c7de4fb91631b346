// Package access keeps the tokens of a host's users: hashed, each for one principal in one role, with an end if it has one.
//
//	tokens, err := access.Open(filepath.Join(state, "host-tokens.json"))
//	go tokens.Run(ctx)
//	h := host.New(host.Options{Access: tokens})
//
// The file is also changed by other processes, the commands that create and revoke tokens, while a host runs. So a host looks at it
// every second, and before it refuses anybody. It holds no token, only what tells whether one is right: a token is 256 bits of
// chance, so that a plain hash is as good as a slow one.
//
// Beside it are files that the host alone changes: whose clientIds are (Owners), and which browsers are logged in (Logins).
package access
