package local

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"tether/agent/localapi"
)

func TestFloodsShareARate(t *testing.T) {
	var b bulk
	now := time.Now()
	const piece = 32 << 10
	sent := 0
	for !b.reserve(piece, now).After(now) {
		sent += piece
	}
	if sent < bulkBurst-2*piece || sent > bulkBurst+2*piece {
		t.Errorf("%d bytes at once, want %d", sent, bulkBurst)
	}
	if due := b.reserve(bulkLeast-1, now); !due.IsZero() {
		t.Errorf("an echo waits for a flood until %v", due.Sub(now))
	}
	// Many that ask as soon as they may get equal parts of the rate.
	const streams, span = 50, time.Second
	var due [streams]time.Time
	var got [streams]int
	for at := now; at.Before(now.Add(span)); at = at.Add(time.Millisecond) {
		for i := range due {
			if !due[i].After(at) {
				due[i] = b.reserve(piece, at)
				got[i] += piece
			}
		}
	}
	total := 0
	for i, n := range got {
		total += n
		if n < bulkRate/streams*8/10 || n > bulkRate/streams*12/10 {
			t.Errorf("stream %d got %d bytes of %d", i, n, bulkRate)
		}
	}
	if total < bulkRate*9/10 || total > bulkRate*11/10 {
		t.Errorf("%d bytes in a second, want %d", total, bulkRate)
	}
	// Who has been quiet may burst again, but not save up more than that.
	late := now.Add(time.Hour)
	if due := b.reserve(bulkBurst+piece, late); due.Before(late) || due.After(late.Add(time.Millisecond)) {
		t.Errorf("after an hour: %v", due.Sub(late))
	}
}

func FuzzPtyMessages(f *testing.F) {
	for _, seed := range []string{
		`{"type":"pty:attach","id":"pty-abc123","since":5,"ack":true}`, `{"type":"pty:detach","id":"pty-abc123"}`,
		`{"type":"pty:input","id":"pty-abc123","data":"ls -la\n"}`, `{"type":"pty:resize","id":"pty-abc123","cols":120,"rows":40}`,
		`{"type":"pty:ack","id":"x","end":9}`, `{"type":"ping"}`, `{"type":"`, `[]`, `{"type":1}`, `{"TYPE":"ping"}`, "\x00", `{"type":"pty:input","id":"x","data":null}`,
		`{"data":"\u0003\ud83d","id":"x","type":"pty:input"}`, `{"type":"pty:input","id":"x","data":"","Data":"y"}`, `{"type":"pty:input","id":"x","data":"y","data":"","type":"ping"}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if quick, ok := decodeText(data); ok {
			var r request
			if err := json.Unmarshal(data, &r); err != nil || !reflect.DeepEqual(quick, r) {
				t.Errorf("%q was taken as %+v instead of %+v (%v)", data, quick, r, err)
			}
		}
		r, err := parse(data)
		kind, id := r.Type, r.ID
		refused := &localapi.Error{Code: localapi.CodeNoTerminal}
		errors.As(err, &refused)
		answer := appendError(nil, answerable(id), refused)
		if err == nil && (kind == "" || kind != "ping" && id == "") {
			t.Errorf("%q was taken as %q for %q", data, kind, id)
		}
		if err != nil && kind != "" {
			t.Errorf("%q is wrong (%v) and has the type %q", data, err, kind)
		}
		if len(id) > 64 && kind != "ping" {
			t.Errorf("an id of %d bytes is answered", len(id))
		}
		var m map[string]any
		if err := json.Unmarshal(answer, &m); err != nil || m["type"] != "pty:error" || m["id"] == nil || m["error"] == "" || !utf8.Valid(answer) {
			t.Errorf("%q is answered with %q: %v", data, answer, err)
		}
	})
}
