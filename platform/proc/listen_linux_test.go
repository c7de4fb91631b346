package proc_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
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
		file := must.Get(l.(*net.TCPListener).File())(t)
		defer file.Close()
		terminal := proc.Terminal{ID: "pty-" + network}
		child := exec.Command("sleep", "60") // inherits the socket
		child.Env = append(os.Environ(), proc.Tag(terminal.ID))
		child.ExtraFiles = []*os.File{file}
		must.Do(t, child.Start())
		defer child.Wait()
		defer child.Process.Kill()
		for _, c := range []struct {
			id   string
			port int
			want bool
		}{{terminal.ID, port, true}, {"pty-other", port, false}, {terminal.ID, 1, false}} {
			if got, err := proc.Listens(proc.Terminal{ID: c.id}, c.port); err != nil || got != c.want {
				t.Errorf("%s: %s listens on %d: %t, %v; want %t", network, c.id, c.port, got, err, c.want)
			}
		}
		all, err := proc.Listeners([]proc.Terminal{terminal})
		want := []proc.Listener{{Pid: child.Process.Pid, Addr: l.Addr().(*net.TCPAddr).AddrPort()}}
		if diff := cmp.Diff(want, all["pty-"+network], cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", network, err, diff)
		}
	}
}
