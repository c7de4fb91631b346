// Package devices is the host's door for machines that pair by their keys, beside AHP: docs/PROTOCOL.md.
//
//	d, err := devices.New(devices.Options{Key: key, Tokens: tokens, Pending: path})
//	h := host.New(host.Options{Access: devices.Both(tokens, d)})
//	http.Handle(pairing.Path, d)
//
// Whoever asks here has shown nothing yet. So all that is kept for them is bounded, in number and in time, and nothing is kept for
// longer than the process but the machines that somebody let in, which package access keeps.
package devices
