package devserver_test

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/devserver"
	"tether/platform/proc"
)

// Only addresses at which nothing but terminals' programs can answer are connected to.
func TestReachable(t *testing.T) {
	const own, other = true, false
	at := func(addr string, is bool) proc.Bound { return proc.Bound{Addr: netip.MustParseAddr(addr), Own: is} }
	for name, c := range map[string]struct {
		all  []proc.Bound
		want []string
	}{
		"nothing":                         {nil, nil},
		"IPv4":                            {[]proc.Bound{at("127.0.0.1", own)}, []string{"127.0.0.1"}},
		"IPv6":                            {[]proc.Bound{at("::1", own)}, []string{"::1"}},
		"all addresses":                   {[]proc.Bound{at("::", own)}, []string{"127.0.0.1", "::1"}},
		"all of IPv4":                     {[]proc.Bound{at("0.0.0.0", own)}, []string{"127.0.0.1"}},
		"an address of the network":       {[]proc.Bound{at("192.0.2.1", own), at("127.0.0.1", other)}, nil},
		"another one on IPv4":             {[]proc.Bound{at("::", own), at("127.0.0.1", other)}, []string{"::1"}},
		"another one on all of IPv4":      {[]proc.Bound{at("::1", own), at("0.0.0.0", other)}, []string{"::1"}},
		"two that share an address":       {[]proc.Bound{at("127.0.0.1", own), at("127.0.0.1", other)}, nil},
		"one address of another's socket": {[]proc.Bound{at("127.0.0.1", own), at("::", other)}, []string{"127.0.0.1"}},
	} {
		got, err := devserver.Reachable(c.all, 1)
		if !cmp.Equal(got, c.want) || (err == nil) != (len(c.want) > 0) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// Those who need a look at the same time share one, which begins after they have asked.
func TestLooksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l devserver.Looks
		n := 0
		look := func() ([]string, error) {
			n++
			began := time.Now().String()
			time.Sleep(300 * time.Millisecond)
			return []string{began}, nil
		}
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				asked := time.Now().String()
				if got, _ := l.Find(look); got[0] < asked {
					t.Errorf("a look of %s for who asks at %s", got, asked)
				}
			})
		}
		all.Wait()
		if n > 4 {
			t.Errorf("%d looks in 590 ms that take 300 ms each", n)
		}
	})
}
