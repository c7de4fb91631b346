// Package devices is the host's door for machines that pair by their keys, beside the
// door for AHP. docs/PROTOCOL.md describes its protocol.
//
//	d, err := devices.New(devices.Options{Key: key, Tokens: tokens, Pending: path})
//	h := host.New(host.Options{Access: devices.Both(tokens, d)})
//	http.Handle(pairing.Path, d)
//
// Its clients are not authenticated yet. So all state kept for them is bounded, in number
// and in time. Only approved machines are kept beyond the process, in package access.
package devices
