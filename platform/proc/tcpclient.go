package proc

import (
	"errors"
	"net/netip"
)

// ErrNoConnection is returned by FindTCPClient where the client's end of the connection
// is closed.
var ErrNoConnection = errors.New("the client's end of the connection is closed")

// TCPClient tells which processes have the client's end of a TCP connection open.
type TCPClient struct {
	// Processes are those that can be found. Processes that may not be examined are
	// missing, such as those of another user and those that have made themselves
	// undumpable, and so are those in a pid namespace that is not visible here.
	Processes []ID
	// Foreign says that the system knows the socket to be another user's. Only Linux
	// tells.
	Foreign bool
}

// clientTries bounds how often FindTCPClient looks for a socket that exists and that no
// process has: it may be on its way from one process to another.
const clientTries = 3

// FindTCPClient looks for the processes that have the client's end of a TCP connection
// within this machine open. client and server are the addresses as the server sees them.
// It blocks for milliseconds, on macOS for some hundred, and 5 s at most.
func FindTCPClient(client, server netip.AddrPort) (TCPClient, error) {
	client, server = netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), netip.AddrPortFrom(server.Addr().Unmap(), server.Port())
	var found TCPClient
	for range clientTries {
		var err error
		if found, err = findTCPClient(client, server); err != nil || len(found.Processes) > 0 || found.Foreign {
			return found, err
		}
	}
	return found, nil
}
