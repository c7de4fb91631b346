// Package socket tells whether a TCP port is free. It only binds to the port: it neither
// listens, for which firewalls ask the person, nor connects, which servers log.
//
//	if socket.Free(3000) { … }
package socket

import "net/netip"

// addresses are those that a server may listen on. One at an address of its own leaves
// that of all addresses free on some systems, and the other way round.
var addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback(), netip.IPv4Unspecified(), netip.IPv6Unspecified()}

// Free reports whether a program could listen on a TCP port at 127.0.0.1, at ::1 and at
// all addresses of both kinds. A kind of address that this machine lacks counts as free.
// Another program may take the port at any time.
func Free(port int) bool {
	for _, addr := range addresses {
		if taken(netip.AddrPortFrom(addr, uint16(port))) {
			return false
		}
	}
	return true
}
