package proc_test

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// listening prints where it listens, of both kinds of addresses.
func listening() {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		if l, err := net.Listen("tcp", at); err == nil {
			fmt.Println(l.Addr())
		}
	}
	fmt.Println("all")
	testkit.Hang()
}

func TestListensOnWindows(t *testing.T) {
	testkit.Leaks(t)
	child := self("listening")
	out := must.Get(child.StdoutPipe())(t)
	must.Do(t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	var want []netip.AddrPort
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "all"; {
		want = append(want, netip.MustParseAddrPort(strings.TrimSpace(lines.Text())))
	}
	if len(want) == 0 {
		t.Fatal("it listens nowhere")
	}
	us, it := proc.Terminal{ID: "us", Pid: os.Getpid()}, proc.Terminal{ID: "it", Pid: child.Process.Pid}
	all := must.Get(proc.Listeners([]proc.Terminal{us, it}))(t)
	for _, id := range []string{"us", "it"} { // it descends from us
		for _, at := range want {
			found := false
			for _, l := range all[id] {
				found = found || l == proc.Listener{Pid: child.Process.Pid, Addr: at}
			}
			if !found {
				t.Errorf("of %s: %v, want %v of process %d in it", id, all[id], at, child.Process.Pid)
			}
		}
	}
	held, err := proc.AllListeners([]proc.Terminal{it})
	for _, at := range want {
		if err != nil || !slices.ContainsFunc(held, func(h proc.Held) bool {
			return h.Listener == proc.Listener{Pid: child.Process.Pid, Addr: at} && slices.Equal(h.In, []string{"it"})
		}) {
			t.Errorf("this user's: %v, %v; want %v in it", held, err, at)
		}
	}
	here, _ := os.Getwd()
	if got := proc.Directories([]int{child.Process.Pid})[child.Process.Pid]; !strings.EqualFold(got, here) {
		t.Errorf("the directory is %q, want %q", got, here)
	}
	for port, want := range map[int]bool{int(want[0].Port()): true, 1: false} {
		if got, err := proc.Listens(it, port); err != nil || got != want {
			t.Errorf("port %d: %t, %v; want %t", port, got, err, want)
		}
	}
}
