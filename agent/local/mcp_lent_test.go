//go:build linux

package local_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/agenttools"
	"tether/ahp"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// A reader at a host gets the page of the lent port, whatever the arguments name, masked
// and with what the terminal printed; and with --write may do more than read.
func TestFetchAt(t *testing.T) {
	d := openMasking(t)
	id, _, port := d.served(t, term.User, "http://other.example/")
	otherID, _, other := d.served(t, term.User, "http://other.example/")
	h := must.Get(d.pool.As(term.User).Terminal(term.ID(id)))(t)
	must.Do(t, h.LendTo("lab", loans.Change{}))
	ask := func(write bool, in string) ahp.FetchResult {
		r := d.server.FetchAt(t.Context(), "lab", h.ID(), vocab.LentPort{Port: port, Write: write}, ahp.FetchParams{Arguments: []byte(in)})
		must.Do(t, r.Validate())
		tellsNone(t, "a reader at a host", string(r.Answer)+r.Error)
		return r
	}
	r := ask(false, fmt.Sprintf(`{"terminalId":%q,"port":%d,"path":"/broken"}`, otherID, other))
	var a agenttools.FetchAnswer
	must.Do(t, json.Unmarshal(r.Answer, &a))
	if a.Status != 500 || a.Printed == nil || len(a.Printed.Problems) != 1 || a.URL != fmt.Sprintf("http://localhost:%d/broken", port) {
		t.Errorf("%+v", a)
	}
	if r := ask(false, `{"path":"/image"}`); r.Blob == nil || r.Blob.Type != "image/png" || string(r.Blob.Data) != "\x89PNG" {
		t.Errorf("%s %+v", r.Answer, r.Blob)
	}
	for in, want := range map[string]string{`{"method":"POST"}`: "method", `{"path":"/console"}`: "/console"} {
		if r := ask(false, in); !strings.Contains(r.Error, want) {
			t.Errorf("%s: %+v", in, r)
		}
		if r := ask(true, in); r.Error != "" {
			t.Errorf("%s with --write: %+v", in, r)
		}
	}
	for _, in := range []string{"", "null", "[]", `{"url":"http://a"}`, `{"method":"CONNECT"}`} {
		if r := ask(true, in); r.Error == "" && in != "" {
			t.Errorf("%s: %s", in, r.Answer)
		}
	}
	must.Do(t, h.Unlend("lab"))
	if r := ask(true, "{}"); r.Error == "" {
		t.Errorf("a terminal that is not lent: %s", r.Answer)
	}
}
