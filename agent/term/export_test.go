package term

import (
	"encoding/json"
	"reflect"
	"unsafe"
)

// TripScanner breaks the first reader of the terminal's output. Call it while the child
// prints nothing.
func (h Handle) TripScanner() { h.t.intake.scanner = nil }

// TripRedaction breaks the redaction for hosts, which runs under the terminal's lock.
func (h Handle) TripRedaction() {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	filter := hidden(h.t.log.Redaction(), "filter").Elem()
	filter.SetZero()
}

// TripCuts breaks the list from which text offsets follow.
func (h Handle) TripCuts() {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	push := hidden(h.t.log, "cuts", "blocks").MethodByName("Push")
	push.Call([]reflect.Value{reflect.Zero(push.Type().In(0))})
}

// hidden returns a pointer to a field of another package's struct.
func hidden(of any, path ...string) reflect.Value {
	v := reflect.ValueOf(of).Elem()
	for _, name := range path {
		v = v.FieldByName(name)
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr()))
}

// AdoptWithABug is the begin of Adopt by a daemon whose scanner is broken. The channel is
// closed when it has scanned all there was.
func (p *Pool) AdoptWithABug(h HolderPTY, past Past) (caught <-chan struct{}, err error) {
	if err := p.reserve(Start{ID: past.ID, Owner: User}, 1); err != nil {
		return nil, err
	}
	t := p.adopted(h, past)
	caught, t.intake.scanner = t.adoption.caught, nil
	p.start(t, nil)
	return caught, nil
}

// HasRedaction reports whether the terminal's output is searched for secrets.
func (h Handle) HasRedaction() bool {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.log.Redaction() != nil
}

// RecordedPorts reads ports of a loan in a record.
func RecordedPorts(raw string) []LentPort {
	var all []recordedPort
	if json.Unmarshal([]byte(raw), &all) != nil {
		return nil
	}
	return portsFrom(all)
}
