package uplink_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/jsonrpc"
)

// A host that admits the machine, but not to lend, is not absent: status names the remedy, nothing is created.
func TestAHostThatLetsUsOnlyObserve(t *testing.T) {
	no := false
	marker := ahp.NewClientTerminals(30000)
	marker.MayLend = &no
	taken := map[string]*jsonrpc.Error{ahp.MethodInitialize: jsonrpc.Errorf(ahp.CodePermissionDenied, "this machine is registered at the host under another token; unpair, then pair again")}
	for name, f := range map[string]*fakeHost{
		"lets this token only observe":     {target: ahp.TargetClient, marker: marker.Meta()},
		"registered at the host under ano": {target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta(), fail: taken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := fakeWorld(t, f, nil)
				w.spawn(term.Spec{})
				synctest.Wait()
				s := w.link.Status()
				if s.State != uplink.StateRefused || s.Err == nil || !strings.Contains(s.Err.Error(), name) {
					t.Errorf("the link is %+v, want it refused", s)
				}
				if len(f.created) > 0 || s.Terminals[0].There {
					t.Errorf("created %q; %+v", f.created, s.Terminals)
				}
			})
		})
	}
}
