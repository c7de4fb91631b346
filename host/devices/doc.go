// Package devices is the host's door for machines that pair by their keys, in addition to AHP: docs/PROTOCOL.md.
//
//	d, err := devices.New(devices.Options{Key: key, Tokens: tokens, Pending: path})
//	h := host.New(host.Options{Access: devices.Both(tokens, d)})
//	http.Handle(pairing.Path, d)
//
// Its clients are not authenticated yet. So all state kept for them is bounded, in number and in time, and only approved machines outlive
// the process, in package access.
package devices
