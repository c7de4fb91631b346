package view

import (
	"fmt"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// Others' output is shown to a person without sequences that act on their terminal, in
// any division; the rest is unchanged.
func TestSafeView(t *testing.T) {
	const good = "\x1b[31mred\x1b[0m \x1b]0;title\a\x1b]8;;https://x\alink\x1b]8;;\a é🙂\r\n"
	const bad = "\x1b[c|\x1b[6n|\x1b]52;c;ZXZpbA==\a|\x1b]11;?\a|\x1bP$qm\x1b\\|\x1b[21t|\x1b[5i|\x05|\x1b_Ga=q,i=1;AAAA\x1b\\|"
	for size := 1; size <= len(good+bad); size++ {
		var out strings.Builder
		v := NewSafe(&out)
		var piece []rune
		for _, r := range good + bad + good {
			if piece = append(piece, r); len(piece) == size {
				fmt.Fprint(v, string(piece))
				piece = piece[:0]
			}
		}
		fmt.Fprint(v, string(piece)+"\x1b]52;c;never ended")
		must.Do(t, v.Close())
		got := out.String()
		if strings.Count(got, good) != 2 {
			t.Fatalf("in pieces of %d: shown as %q", size, got)
		}
		for _, never := range strings.Split(strings.TrimSuffix(bad, "|"), "|") {
			if strings.Contains(got, never) {
				t.Errorf("in pieces of %d: %q is in %q", size, never, got)
			}
		}
	}
}
