package loans_test

import (
	"encoding/json"
	"testing"
	"time"

	"tether/agent/loans"
	"tether/internal/testkit/must"
)

// What no daemon has written is not taken from a record.
func TestPortsInARecord(t *testing.T) {
	for raw, want := range map[string]int{
		`[{"port":3000},{"port":3000},{"port":0},{"port":80},{"port":-1},{"port":65536},{"port":4000,"until":-5},{"port":5000,"since":-5,"fetched":-5,"latest":-9}]`: 3,
		`[]`: 0,
	} {
		var r loans.Recorded
		must.Do(t, json.Unmarshal([]byte(`{"host":"lab","ports":`+raw+`}`), &r))
		var l loans.List
		l.Restore(&r, time.Now())
		all := l.Loan("lab").Ports
		if len(all) != want {
			t.Errorf("%s: %+v, want %d", raw, all, want)
		}
		for _, p := range all {
			if p.Fetched < 0 || p.Port != loans.AutoPort && !p.IsOpen() || p.Since.Unix() > 0 || !p.Latest.IsZero() {
				t.Errorf("%s: %+v", raw, p)
			}
		}
	}
}
