package ahp_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/ahp"
)

// Questions and answers about runs are bounded.
func TestRunsAreValidated(t *testing.T) {
	names := strings.Repeat(`"ann",`, ahp.MaxReaderNames)
	for _, c := range []struct {
		into any
		text string
		ok   bool
	}{
		{new(ahp.RunsParams), `{"channel":"a:/b","reader":{"names":["ann","group:web","agent:ci","everyone"],"owner":true},"tool":"verdict","arguments":{},"shows":16000}`, true},
		{new(ahp.RunsParams), `{"reader":{},"tool":"verdict"}`, true},
		{new(ahp.RunsParams), `{"reader":{"names":["a b"]},"tool":"verdict"}`, false},
		{new(ahp.RunsParams), `{"reader":{"names":[` + names + `"ann"]},"tool":"verdict"}`, false},
		{new(ahp.RunsParams), `{"reader":{"guest":"AbCdEfGh"},"tool":"verdict"}`, false},
		{new(ahp.RunsParams), `{"channel":"b","tool":"verdict"}`, false},
		{new(ahp.RunsParams), `{"tool":"` + strings.Repeat("x", ahp.MaxToolName+1) + `"}`, false},
		{new(ahp.RunsParams), `{"tool":"verdict","shows":-1}`, false},
		{new(ahp.RunsParams), fmt.Sprintf(`{"tool":"verdict","shows":%d}`, ahp.MaxRunsAnswer+1), false},
		{new(ahp.RunsParams), `{"tool":"verdict","arguments":"` + strings.Repeat("x", ahp.MaxRunsArguments) + `"}`, false},
		{new(ahp.RunsResult), `{"answer":{"runs":[]}}`, true},
		{new(ahp.RunsResult), `{"error":"Run not found","unknown":true}`, true},
		{new(ahp.RunsResult), `{}`, false},
		{new(ahp.RunsResult), `{"answer":[1]}`, false},
		{new(ahp.RunsResult), `{"answer":{"x":"` + strings.Repeat("x", ahp.MaxRunsAnswer) + `"}}`, false},
		{new(ahp.RunsResult), `{"error":"` + strings.Repeat("x", 3<<10) + `"}`, false},
	} {
		if err := ahp.DecodeParams([]byte(c.text), c.into); (err == nil) != c.ok {
			t.Errorf("%.80s: %v, want ok %t", c.text, err, c.ok)
		}
	}
}
