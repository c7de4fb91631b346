package proc

import (
	"net/netip"
	"slices"
)

// For tests of other systems' output.
var (
	ParseLsofClient = parseLsofClient
	ParseLsof       = parseLsof
	ParseLsofDirs   = parseLsofDirs
	Owners          = owners
	Sorted          = sorted
)

// ParseTCPTable reads a table of IPv4, or of IPv6.
func ParseTCPTable(table []byte, six bool) []Listener {
	if six {
		return listenersIn(table, tcpRow6)
	}
	return listenersIn(table, tcpRow4)
}

// LsofArgs are all arguments for the sockets on which a user's processes listen.
func LsofArgs(uid int) []string { return slices.Concat(lsofFormat, lsofArgs(uid)) }

// ConnectionIn returns the ends and the process of the first row of a table of IPv4, or
// of IPv6.
func ConnectionIn(table []byte, six bool) (local, remote netip.AddrPort, pid int) {
	row := tcpRow4
	if six {
		row = tcpRow6
	}
	e := parseTCPTable(table, row)[0]
	return e.local, e.remote, e.pid
}
