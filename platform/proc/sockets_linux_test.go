package proc

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's answer has what its tables have.
func TestListeningSocketsAreThoseOfTheTables(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil {
			t.Log(err)
			continue
		}
		defer l.Close()
		asked, read := listening{}, listening{}
		if err := errors.Join(asked.ask(unix.AF_INET), asked.ask(unix.AF_INET6)); err != nil {
			t.Skip("this kernel answers no questions about sockets: ", err)
		}
		for _, table := range tcpTables {
			_ = read.read(table) // a kernel without IPv6 has one
		}
		at := netip.MustParseAddrPort(l.Addr().String())
		for link, addr := range read {
			if addr == at && asked[link] != at {
				t.Errorf("%s: %s is %v in the tables, and %v by the answer", network, link, addr, asked[link])
			}
		}
		if !slices.Contains(slices.Collect(maps.Values(asked)), at) {
			t.Errorf("%s: the answer lacks %v: %v", network, at, asked)
		}
	}
}
