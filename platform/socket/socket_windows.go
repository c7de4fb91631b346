package socket

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/windows"
)

// taken reports whether no server can bind to the address, also because Windows has
// reserved the port.
func taken(at netip.AddrPort) bool {
	var data windows.WSAData
	if windows.WSAStartup(2<<8|2, &data) != nil {
		return false
	}
	defer windows.WSACleanup()
	family, to := windows.AF_INET6, windows.Sockaddr(&windows.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, to = windows.AF_INET, &windows.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := windows.Socket(family, windows.SOCK_STREAM, windows.IPPROTO_TCP)
	if err != nil {
		return false // there are no such addresses
	}
	defer windows.Closesocket(fd)
	if family == windows.AF_INET6 {
		_ = windows.SetsockoptInt(fd, windows.IPPROTO_IPV6, windows.IPV6_V6ONLY, 1) // the default
	}
	err = windows.Bind(fd, to)
	return err != nil && !errors.Is(err, windows.WSAEADDRNOTAVAIL)
}
