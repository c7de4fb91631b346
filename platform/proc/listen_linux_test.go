package proc_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/platform/proc"
)

func TestListens(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil {
			t.Logf("%s: %v", network, err) // a machine without it
			continue
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		tag := proc.Tag("pty-" + network)
		child := exec.Command("sleep", "60") // inherits the socket
		child.Env = append(os.Environ(), tag)
		child.ExtraFiles = []*os.File{file}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		defer child.Wait()
		defer child.Process.Kill()
		for _, c := range []struct {
			tag  string
			port int
			want bool
		}{{tag, port, true}, {proc.Tag("pty-other"), port, false}, {tag, 1, false}} {
			if got, err := proc.Listens(c.tag, c.port); err != nil || got != c.want {
				t.Errorf("%s: %s listens on %d: %t, %v; want %t", network, c.tag, c.port, got, err, c.want)
			}
		}
		all, err := proc.Listeners()
		want := []proc.Listener{{Pid: child.Process.Pid, Addr: l.Addr().(*net.TCPAddr).AddrPort()}}
		if diff := cmp.Diff(want, all["pty-"+network], cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", network, err, diff)
		}
	}
}
