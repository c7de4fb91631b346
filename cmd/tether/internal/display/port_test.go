package display_test

import (
	"strings"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
	"tether/vocab"
)

func TestLentPorts(t *testing.T) {
	now := time.Now()
	ports := []vocab.LentPort{
		{Port: 3000, Write: true, Since: now.Add(-time.Hour), Until: now.Add(time.Hour), Fetched: 1, Latest: now},
		{Auto: true, Since: now}, {Port: 5173, Auto: true, Since: now}, {Port: 8080, Closed: "another program\x1b[2J has it"},
	}
	terminal := localapi.Terminal{Loans: []localapi.Loan{{Host: "lab", Since: now, Ports: ports}}}
	for what, c := range map[string]struct{ got, want string }{
		"a list":      {display.Lent(terminal), "lab (ports 3000 5173, port 8080 closed)"},
		"nothing yet": {display.Lent(localapi.Terminal{Loans: []localapi.Loan{{Host: "lab", Ports: ports[1:2]}}}), "lab (port auto)"},
		"in full":     {display.PortInFull(ports[0]), "port 3000 (also for writing) until " + display.Clock(ports[0].Until) + ", open for 1h, fetched 1 time, last 0s ago"},
		"auto":        {display.PortInFull(ports[1]), "port auto, open for 0s"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	if text := display.SharedWith(terminal); !strings.HasPrefix(text, "is shared with lab, with port 3000 (also for writing) until ") || strings.Contains(text, "\x1b") ||
		!strings.Contains(text, ", port auto, port 5173, port 8080 (closed: another program") {
		t.Errorf("%q", text)
	}
}
