package proc_test

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

var sameAddr = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

func listener(pid int, at string) proc.Listener {
	return proc.Listener{Pid: pid, Addr: netip.MustParseAddrPort(at)}
}

// lsofSample is the output of lsof 4.95 for two processes, with lines of other letters
// that other versions print.
const lsofSample = "p12715\nf3\ntIPv4\nn127.0.0.1:42139\nf4\ntIPv6\nn*:42461\nf5\ntIPv4\nn*:36707\nf6\ntIPv6\nn[::1]:55983\np77\nf9\ntIPv6\nn[fe80::1%lo0]:8080\n"

func TestParseLsof(t *testing.T) {
	for _, c := range []struct {
		name, out string
		want      []proc.Listener
	}{
		{"recorded", lsofSample, []proc.Listener{listener(12715, "127.0.0.1:42139"), listener(12715, "[::]:42461"), listener(12715, "0.0.0.0:36707"),
			listener(12715, "[::1]:55983"), listener(77, "[fe80::1]:8080")}},
		{"nothing", "", nil},
		{"no process", "n127.0.0.1:1\n", nil},
		{"a process that is none", "pmany\nn127.0.0.1:1\n", nil},
		{"names", "p1\ntIPv4\nnlocalhost:http\nn*:http\nn*:70000\nn*\nn\n\n", nil},
		{"cut off", "p1\ntIPv4\nn127.0.0.1:80", []proc.Listener{listener(1, "127.0.0.1:80")}},
		{"Windows's lines", "p1\r\ntIPv4\r\nn*:80\r\n", []proc.Listener{listener(1, "0.0.0.0:80")}},
	} {
		check.Equal(t, c.name, c.want, proc.ParseLsof([]byte(c.out)), sameAddr)
	}
}

func TestParseLsofDirs(t *testing.T) {
	out := "p1\nfcwd\nn/home/me/src\np2\nfcwd\nn/home/me/a\\nb\np3\nfcwd\nncwd: unknown\np4\nn\n\nx\nn/\n"
	want := map[int]string{1: "/home/me/src", 4: "/"}
	if diff := cmp.Diff(want, proc.ParseLsofDirs([]byte(out))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The real lsof, where there is one, is understood.
func TestLsof(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	path, err := exec.LookPath("lsof")
	if err != nil {
		t.Skip("no lsof: scripts/test-tools.sh installs it")
	}
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer l.Close()
	out, err := exec.Command(path, proc.LsofArgs(os.Getuid())...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := listener(os.Getpid(), l.Addr().String())
	for _, got := range proc.ParseLsof(out) {
		if got == want {
			return
		}
	}
	t.Errorf("it printed\n%swhere %v is not read", out, want)
}

// Tables as GetExtendedTcpTable writes them: two sockets that listen, one that is
// connected.
const (
	table4 = "03000000" +
		"02000000 7f000001 1f900000 00000000 00000000 d2040000" +
		"05000000 7f000001 1f910000 7f000001 c3500000 d2040000" +
		"02000000 00000000 0050abcd 00000000 00000000 2a000000"
	table6 = "01000000" +
		"00000000000000000000000000000001 00000000 0bb80000 00000000000000000000000000000000 00000000 00000000 02000000 d2040000"
)

func fromHex(t testing.TB, s string) []byte {
	return must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}

func TestParseTCPTable(t *testing.T) {
	four, six := fromHex(t, table4), fromHex(t, table6)
	both := []proc.Listener{listener(1234, "127.0.0.1:8080"), listener(42, "0.0.0.0:80")}
	for _, c := range []struct {
		name  string
		table []byte
		six   bool
		want  []proc.Listener
	}{
		{"IPv4", four, false, both},
		{"IPv6", six, true, []proc.Listener{listener(1234, "[::1]:3000")}},
		{"room behind it", append(bytes.Clone(four), make([]byte, 100)...), false, both},
		{"cut off", four[:len(four)-1], false, both[:1]},
		{"no row", four[:4], false, nil},
		{"nothing", nil, false, nil},
		{"more rows than there are", append([]byte{0xff, 0xff, 0xff, 0xff}, four[4:]...), false, both},
	} {
		check.Equal(t, c.name, c.want, proc.ParseTCPTable(c.table, c.six), sameAddr)
	}
}

// Each listener read from any text or table has a process, and there are no more of them
// than fit in the input.
func FuzzListeners(f *testing.F) {
	f.Add([]byte(lsofSample))
	f.Add(fromHex(f, table4))
	f.Add(fromHex(f, table6))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, l := range proc.ParseLsof(data) {
			if l.Pid <= 0 || !l.Addr.IsValid() || l.Addr.Addr().Zone() != "" {
				t.Errorf("%q: %v", data, l)
			}
		}
		for size, six := range map[int]bool{24: false, 56: true} {
			all := proc.ParseTCPTable(data, six)
			if len(all) > len(data)/size {
				t.Errorf("%d sockets in %d bytes", len(all), len(data))
			}
			for _, l := range all {
				if !l.Addr.IsValid() || l.Addr.Addr().Is4In6() {
					t.Errorf("%x: %v", data, l)
				}
			}
		}
	})
}

// Without tags, descent and session tell whose a socket is.
func TestOwners(t *testing.T) {
	row := func(pid, parent, session int) proc.Info {
		return proc.Info{ID: proc.ID{Pid: pid}, Parent: parent, Session: session}
	}
	all := []proc.Info{
		row(1, 0, 1), row(10, 1, 10), row(11, 10, 10), row(12, 11, 12), // a shell, a program, a child with a session of its own
		row(13, 1, 10), row(14, 13, 14), // its parent has ended, the session tells; and a child of that
		row(20, 12, 20), row(21, 20, 20), // a terminal inside the first
		row(30, 1, 30),
	}
	in := proc.Owners(all, []proc.Terminal{{ID: "a", Pid: 10}, {ID: "b", Pid: 20}, {ID: "gone", Pid: 0}, {ID: "init", Pid: 1}})
	want := map[int][]string{10: {"a"}, 11: {"a"}, 12: {"a"}, 13: {"a"}, 14: {"a"}, 20: {"a", "b"}, 21: {"a", "b"}}
	check.Equal(t, "", want, in)
	sockets := []proc.Listener{listener(11, "127.0.0.1:1"), listener(11, "127.0.0.1:1"), listener(21, "127.0.0.1:2"), listener(30, "127.0.0.1:3")}
	found := proc.Sorted(sockets, in)
	wantSockets := map[string][]proc.Listener{"a": {sockets[0], sockets[2]}, "b": {sockets[2]}}
	check.Equal(t, "", wantSockets, found, sameAddr)
}
