package socket_test

import (
	"net"
	"testing"

	"tether/internal/testkit"
	"tether/platform/socket"
)

// A port is taken if anything listens there, at whatever address, and free again
// afterwards, also with an ended connection.
func TestFree(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1", "0.0.0.0", "::"} {
		port := testkit.FreePort(t)
		if !socket.Free(port) {
			t.Errorf("%d: nothing listens there, yet it is not free", port)
		}
		network := "tcp4"
		if net.ParseIP(at).To4() == nil {
			network = "tcp6" // and not IPv4, for which package net makes "::" stand, too
		}
		l, err := net.ListenTCP(network, &net.TCPAddr{IP: net.ParseIP(at), Port: port})
		if err != nil {
			t.Logf("%s: %v", at, err) // a machine without it
			continue
		}
		if socket.Free(port) {
			t.Errorf("a program listens at %s, yet %d is free", l.Addr(), port)
		}
		to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		if network == "tcp6" {
			to.IP = net.IPv6loopback
		}
		client, err := net.DialTCP(network, nil, to)
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		server.Close() // first: its end of the connection stays for a while
		client.Close()
		if !socket.Free(port) {
			t.Errorf("nothing listens at %s any more, yet %d is not free", l.Addr(), port)
		}
	}
}
