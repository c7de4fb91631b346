package proc

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/windows"
)

// connectedOnly is TCP_TABLE_OWNER_PID_CONNECTIONS of iprtrmib.h.
const connectedOnly = 4

func findTCPClient(client, server netip.AddrPort) (TCPClient, error) {
	four, err := tcpTable(windows.AF_INET, connectedOnly)
	if err != nil {
		return TCPClient{}, err
	}
	six, err := tcpTable(windows.AF_INET6, connectedOnly)
	if err != nil && !errors.Is(err, windows.ERROR_NOT_SUPPORTED) { // a machine without IPv6
		return TCPClient{}, err
	}
	for _, c := range append(parseTCPTable(four, tcpRow4), parseTCPTable(six, tcpRow6)...) {
		if c.local != client || c.remote != server || c.pid == 0 { // one that is closed is process 0's
			continue
		}
		p, err := lookup(c.pid)
		if err != nil {
			return TCPClient{}, nil // it has ended, or may not be looked at
		}
		return TCPClient{Processes: []ID{p.ID}}, nil
	}
	return TCPClient{}, ErrNoConnection
}
