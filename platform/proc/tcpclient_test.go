package proc_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// ends are the addresses of a connection as its server sees them.
func ends(conn net.Conn) (client, server netip.AddrPort) {
	return conn.RemoteAddr().(*net.TCPAddr).AddrPort(), conn.LocalAddr().(*net.TCPAddr).AddrPort()
}

// connected returns both ends of a connection; where the machine lacks the network, nil.
func connected(t testing.TB, network, address string) (client, server net.Conn) {
	l, err := net.Listen(network, address)
	if err != nil {
		t.Logf("%s: %v", network, err)
		return nil, nil
	}
	defer l.Close()
	client = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	t.Cleanup(func() { client.Close() })
	server = must.Get(l.Accept())(t)
	t.Cleanup(func() { server.Close() })
	return client, server
}

func TestFindTCPClient(t *testing.T) {
	self := must.Get(proc.Lookup(os.Getpid()))(t)
	for _, at := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}, {"tcp", "127.0.0.1:0"}} {
		client, server := connected(t, at[0], at[1])
		if client == nil {
			continue
		}
		from, to := ends(server)
		var found proc.TCPClient
		var err error
		// A child of another test has the socket until it execs.
		testkit.Eventually(t, testkit.Patience, fmt.Sprintf("this process alone has the client of %v", at), func() bool {
			found, err = proc.FindTCPClient(from, to)
			return err == nil && slices.Equal(found.Processes, []proc.ID{self.ID}) && !found.Foreign
		})
		if found, _ := proc.FindTCPClient(from, netip.AddrPortFrom(to.Addr(), 1)); len(found.Processes) > 0 {
			t.Errorf("%v: of another server: %+v", at, found)
		}
		client.Close()
		testkit.Eventually(t, testkit.Patience, "the end of the client", func() bool {
			found, err = proc.FindTCPClient(from, to)
			return len(found.Processes) == 0
		})
		if !errors.Is(err, proc.ErrNoConnection) && runtime.GOOS != "darwin" {
			t.Errorf("%v: %+v, %v", at, found, err)
		}
	}
}

// lsof as macOS has it tells the client of a connection.
func TestParseLsofClient(t *testing.T) {
	const sample = "p1\nf3\ntIPv4\nn127.0.0.1:8080\nf4\ntIPv4\nn127.0.0.1:8080->127.0.0.1:50000\np2\nf5\ntIPv4\nn127.0.0.1:50000->127.0.0.1:8080\nf6\nn127.0.0.1:50000->127.0.0.1:8080\n" +
		"p3\nn127.0.0.1:50000->127.0.0.1:8081\np4\nn[::1]:50000->[::1]:8080\np5\nn127.0.0.1:50000->127.0.0.1:8080"
	at := netip.MustParseAddrPort
	for _, c := range []struct {
		client, server string
		want           []int
	}{
		{"127.0.0.1:50000", "127.0.0.1:8080", []int{2, 5}}, {"[::1]:50000", "[::1]:8080", []int{4}}, {"127.0.0.1:50001", "127.0.0.1:8080", nil},
	} {
		if got := proc.ParseLsofClient([]byte(sample), at(c.client), at(c.server)); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: %d, want %d", c.client, c.server, got, c.want)
		}
	}
}

func TestConnectionsInTCPTable(t *testing.T) {
	for table, want := range map[string]string{
		"01000000 05000000 7f000001 1f910000 7f000001 c3500000 d2040000":                                                                   "127.0.0.1:8081 127.0.0.1:50000 1234",
		"01000000 00000000000000000000000000000001 00000000 0bb80000 00000000000000000000000000000001 00000000 c3500000 05000000 d2040000": "[::1]:3000 [::1]:50000 1234",
	} {
		local, remote, pid := proc.ConnectionIn(fromHex(t, table), len(table) > 80)
		if got := fmt.Sprint(local, remote, pid); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The cost of the look-up per other connection.
func BenchmarkFindTCPClient(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			for range others {
				connected(b, "tcp4", "127.0.0.1:0")
			}
			_, server := connected(b, "tcp4", "127.0.0.1:0")
			from, to := ends(server)
			for b.Loop() {
				if found, err := proc.FindTCPClient(from, to); err != nil || len(found.Processes) != 1 {
					b.Fatal(found, err)
				}
			}
		})
	}
}
