package literal_test

import (
	"slices"
	"testing"

	"tether/internal/literal"
)

func TestRequired(t *testing.T) {
	for _, c := range []struct {
		expression string
		lower      bool
		want       []string
	}{
		{`^(\S+):(\d+): (error|warning): (.*)$`, false, []string{": error: ", ": warning: "}},
		{`^a+$`, false, nil},
		{`^--- FAIL: (\S+)`, false, []string{"--- FAIL: "}},
		{`x?abc`, false, []string{"abc", "xabc"}},
		{`.*`, false, nil},
		{`(?i)fatal`, false, nil},
		{`(?i)fatal`, true, []string{"fatal"}},
		{`(?i)OK`, true, []string{"ok", "o\u212a"}},
		{`Fatal [Ee]rror`, true, []string{"fatal error"}},
		{`(?i)ssssssss`, true, []string{"ssssss", "sssss\u017f"}},
		{`(`, true, nil},
	} {
		got := literal.Required(c.expression, c.lower)
		slices.Sort(got)
		if len(got) > 8 { // all ways to write it
			got = got[:2]
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s requires %q, want %q", c.expression, got, c.want)
		}
	}
}
