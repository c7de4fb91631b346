package agenttools

import (
	"cmp"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Bars read as they do at each other interface.
func TestBars(t *testing.T) {
	for _, b := range testkit.Bars {
		c := &capture{data: []byte(b.Output)}
		s := must.Get(c.render(t.Context(), Info{Cols: 80, Rows: 24}))(t)
		text, _ := s.History()
		if got, want := strings.TrimRight(text, " \n"), strings.TrimRight(cmp.Or(b.Screen, b.Text), "\n"); got != want {
			t.Errorf("%s: %q, want %q", b.Name, got, want)
		}
	}
}
