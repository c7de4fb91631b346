package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/internal/testkit/check"
)

func TestDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d agent.Degraded
		began := time.Now()
		expect := func(want ...localapi.Degraded) {
			t.Helper()
			check.Equal(t, "", append([]localapi.Degraded{}, want...), d.List())
		}
		expect()
		d.Report("holder", "")
		expect()
		d.Report("state directory", "read-only")
		time.Sleep(time.Second)
		d.Report("holder", "cannot start")
		d.Report("state directory", "full")
		expect(localapi.Degraded{Cause: "state directory", Text: "full", Since: began},
			localapi.Degraded{Cause: "holder", Text: "cannot start", Since: began.Add(time.Second)})
		d.Report("state directory", "")
		time.Sleep(time.Second)
		d.Report("state directory", "read-only")
		expect(localapi.Degraded{Cause: "holder", Text: "cannot start", Since: began.Add(time.Second)},
			localapi.Degraded{Cause: "state directory", Text: "read-only", Since: began.Add(2 * time.Second)})
	})
}
