package screen_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"tether/internal/xterm"
	"tether/screen"
)

// unseen is a blank without a background, underline, line through it or inverse colours.
var unseen = regexp.MustCompile(`(?m) \|1\|(?:[0246]?[012389ab])?[0-9a-f]{1,6}\|(?:0|[48c]000000)( |$)`)

// The rows with their colours make another terminal look the same, and have nothing but
// text and SGR sequences.
func TestColoured(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 18))
	compared := 0
	for range 2000 {
		stream := randomStream(rng, false)
		if text := stream.String(); strings.Contains(text, `\"q`) || strings.Contains(text, "]8;") {
			continue // protection and links are left out
		}
		is := screen.NewState(stream.Cols, stream.Rows)
		feed(&stream, is)
		rows := is.Coloured()
		looks := screen.NewState(stream.Cols, stream.Rows)
		for y, row := range rows {
			if plain := screen.Render([]byte(row), 100, 1); strings.TrimRight(plain, " ") != strings.TrimRight(strings.Split(is.Text(), "\n")[y], " ") {
				t.Errorf("%s: row %d is %q, its text is %q", &stream, y, row, plain)
			}
			if i := strings.IndexFunc(row, func(r rune) bool { return r < ' ' && r != 0x1b }); i >= 0 || strings.Contains(row, "\x1b]") {
				t.Errorf("%s: row %d has a control: %q", &stream, y, row)
			}
			fmt.Fprintf(looks, "\x1b[%d;1H%s", y+1, row)
		}
		got, want := looks.Dump(), is.Dump()
		for y := range rows { // nobody sees the colour of a blank
			got.Rows[y], want.Rows[y] = unseen.ReplaceAllString(got.Rows[y], " |1$1"), unseen.ReplaceAllString(want.Rows[y], " |1$1")
		}
		if d := xterm.Differ(&xterm.Dump{Rows: got.Rows[:len(rows)]}, &xterm.Dump{Rows: want.Rows[:len(rows)]}); d != "" {
			t.Fatalf("%s\n%s", &stream, d)
		}
		compared++
	}
	if compared < 500 {
		t.Errorf("%d streams were compared", compared)
	}
}
