//go:build unix

package socket

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// taken reports whether no server can bind to the address. As servers do, it sets
// SO_REUSEADDR, so that ended connections do not count; a socket that listens does.
func taken(at netip.AddrPort) bool {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return false // there are no such addresses
	}
	defer unix.Close(fd)
	unix.CloseOnExec(fd)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // without it, more counts as taken
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1) // without it, IPv4 counts, too
	}
	err = unix.Bind(fd, to)
	return err != nil && !errors.Is(err, unix.EADDRNOTAVAIL)
}
