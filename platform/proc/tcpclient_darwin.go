package proc

import (
	"fmt"
	"net/netip"
)

// findTCPClient asks lsof, which sees the processes of this user, or, as root, all.
// Whether another's process has the connection, or nobody any more, it cannot tell.
func findTCPClient(client, server netip.AddrPort) (TCPClient, error) {
	out, err := lsof(fmt.Sprintf("-iTCP:%d", client.Port()))
	if err != nil {
		return TCPClient{}, fmt.Errorf("look for the client of a connection with lsof: %w", err)
	}
	var found TCPClient
	for _, pid := range parseLsofClient(out, client, server) {
		if p, err := lookup(pid); err == nil {
			found.Processes = append(found.Processes, p.ID)
		}
	}
	return found, nil
}
