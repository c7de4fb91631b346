package agent

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"tether/agent/localapi"
)

// degraded lists the faults with which the daemon continues: each part reports its own
// causes, and status shows them. The zero value is ready. It is safe for concurrent use;
// reporting never blocks on anything.
type degraded struct {
	mu  sync.Mutex
	all map[string]localapi.Degraded // by cause
}

// report records a fault. cause is one or two fixed words ("state directory"), text tells
// a person the fault and the remedy. Reporting a cause again replaces the text; an empty
// text ends the fault.
func (d *degraded) report(cause, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was, there := d.all[cause]
	switch {
	case text == "":
		delete(d.all, cause)
		return
	case d.all == nil:
		d.all = map[string]localapi.Degraded{}
	}
	if !there {
		was.Since = time.Now()
	}
	d.all[cause] = localapi.Degraded{Cause: cause, Text: text, Since: was.Since}
}

// list returns the causes, the oldest first.
func (d *degraded) list() []localapi.Degraded {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]localapi.Degraded, 0, len(d.all))
	for _, one := range d.all {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b localapi.Degraded) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}
