// Package loopback tells names that lead to this machine alone, so that nobody between
// can read or change what is sent there.
//
//	if u.Scheme == "http" && !loopback.Is(u.Hostname()) {
package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether a host of a URL, without brackets, is localhost or an address on
// loopback.
func Is(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
