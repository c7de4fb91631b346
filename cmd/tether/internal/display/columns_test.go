package display

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// Columns are aligned with any content, and rows too long for the window are cut.
func TestTableFits(t *testing.T) {
	x := Columns{Least: []int{0, 4, 6}, Rows: [][]string{{"ID", "NAME", "COMMAND"}, {"1", "名前名前名前", "make 田 all"}, {"2", "e\u0301te\u0301", strings.Repeat("long ", 20)}}}
	for _, width := range []int{0, 200, 60, 30, 16} {
		lines := x.Lines(width)
		at := -1
		for _, l := range lines {
			if width > 0 && ansi.StringWidth(l) > width {
				t.Errorf("%d columns in a window of %d: %q", ansi.StringWidth(l), width, l)
			}
			command := strings.TrimRight(l, " ")
			for _, begin := range []string{"COMM", "make", "long"} {
				if i := strings.Index(command, begin); i >= 0 {
					if w := ansi.StringWidth(command[:i]); at >= 0 && w != at {
						t.Errorf("in a window of %d a column begins at %d and %d:\n%s", width, at, w, strings.Join(lines, "\n"))
					} else {
						at = w
					}
				}
			}
		}
	}
	if all := x.Lines(0); !strings.Contains(all[1], "名前名前名前  make 田 all") {
		t.Errorf("cut without a bound: %q", all)
	}
}
