package proc_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
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
		held, err := proc.AllListeners([]proc.Terminal{terminal, {ID: "pty-other"}})
		for pid, in := range map[int][]string{os.Getpid(): nil, child.Process.Pid: {terminal.ID}} {
			i := slices.IndexFunc(held, func(h proc.Held) bool { return h.Pid == pid && int(h.Addr.Port()) == port })
			if i < 0 || !slices.Equal(held[i].In, in) {
				t.Errorf("%s: %v, %v: lacks process %d in %q", network, held, err, pid, in)
			}
		}
		pane := proc.Terminal{ID: "pty-pane", Pid: child.Process.Pid, Unmarked: true}
		if held, err = proc.AllListeners([]proc.Terminal{terminal, pane}); !slices.ContainsFunc(held, func(h proc.Held) bool {
			return h.Pid == child.Process.Pid && slices.Equal(h.In, []string{pane.ID, terminal.ID}) && slices.Equal(h.Marks, []string{terminal.ID})
		}) {
			t.Errorf("%s: in a pane, too: %v, %v", network, held, err)
		}
		if yes, err := proc.Listens(pane, port); err != nil || !yes {
			t.Errorf("%s: in a pane: %t, %v", network, yes, err)
		}
		here, _ := os.Getwd()
		if dirs := proc.Directories([]int{child.Process.Pid, 1 << 30}); len(dirs) != 1 || dirs[child.Process.Pid] != here {
			t.Errorf("directories: %v", dirs)
		}
		all, err := proc.Listeners([]proc.Terminal{terminal})
		want := []proc.Listener{{Pid: child.Process.Pid, Addr: l.Addr().(*net.TCPAddr).AddrPort()}}
		if diff := cmp.Diff(want, all["pty-"+network], cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", network, err, diff)
		}
	}
}
