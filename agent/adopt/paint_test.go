package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/screen"
)

// easel is a terminal that a painter draws on, beside the pane that it draws.
type easel struct {
	t     *testing.T
	pane  *screen.Screen // what the pane shows
	tall  *screen.Screen // the same on a taller screen: the lines above; nil: they are not told
	shown *screen.Screen // what the painter shows
	out   bytes.Buffer
	p     *painter
	size  pty.Size
}

func newEasel(t *testing.T, cols, rows int) *easel {
	e := &easel{t: t, pane: screen.New(cols, rows), tall: screen.New(cols, maxPast), shown: screen.New(cols, rows), size: pty.Size{Cols: uint16(cols), Rows: uint16(rows)}}
	e.p = &painter{w: &e.out, nonce: "n"}
	return e
}

// write lets the pane print text, which nobody looks at yet.
func (e *easel) write(text string) {
	text = strings.ReplaceAll(text, "\n", "\r\n")
	e.pane.Write([]byte(text))
	if e.tall != nil {
		e.tall.Write([]byte(text))
	}
}

// print lets the pane print text, and draws it then.
func (e *easel) print(text string) (drawn string) {
	e.t.Helper()
	e.write(text)
	col, row := e.pane.Cursor()
	look := picture{size: e.size, cursor: true, text: fmt.Appendf(nil, "%s\x1b[%d;%dH", strings.Join(e.pane.Coloured(), "\r\n"), row+1, col+1)}
	past := func() (picture, error) {
		if e.tall == nil {
			return picture{}, errors.New("no history")
		}
		return picture{size: e.size, text: []byte(strings.Join(e.tall.Coloured(), "\n"))}, nil
	}
	e.out.Reset()
	must.Do(e.t, e.p.draw(look, past))
	e.shown.Write(e.out.Bytes())
	x, y := e.shown.Cursor()
	seen := func(s *screen.Screen) []string {
		rows, _, _ := picture{size: e.size, text: []byte(strings.Join(s.Coloured(), "\n"))}.rows(int(e.size.Rows))
		return padded(rows, int(e.size.Rows))
	}
	if got, want := seen(e.shown), seen(e.pane); !slices.Equal(got, want) || x != col || y != row {
		e.t.Fatalf("got  %q, cursor %d,%d\nwant %q, cursor %d,%d\ndrawn by %q", got, x, y, want, col, row, e.out.String())
	}
	return e.out.String()
}

// same checks that the text since the beginning is that of the pane.
func (e *easel) same() {
	e.t.Helper()
	got, _ := e.shown.History()
	want, _ := e.pane.History()
	if got != want {
		e.t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}

func TestPicturesOfLines(t *testing.T) {
	e := newEasel(t, 40, 6)
	for n := range 40 {
		e.print(fmt.Sprintf("line \x1b[3%dm%d\x1b[m\n", n%8, n))
	}
	e.print("$ ")
	e.same()
	for n := range 9 { // some lines at once: less than a screen, then more
		for m := range n {
			e.write(fmt.Sprintf("%d of %d\n", m, n))
		}
		e.print("$ ")
		e.same()
	}
	if drawn := e.print("x"); strings.Contains(drawn, "\n") || len(drawn) > 30 {
		t.Errorf("a character is drawn by %q", drawn)
	}
}

func TestPicturesOfAProgramThatDraws(t *testing.T) {
	e := newEasel(t, 40, 6)
	e.tall = nil
	e.print("$ top\n")
	for n := range 20 {
		drawn := e.print(fmt.Sprintf("\x1b[H\x1b[J%d seconds\n\n\x1b[7mload %d\x1b[m\n\n\nhelp", n, n*n))
		if strings.Contains(drawn, "Gap") {
			t.Fatalf("a program that draws has a gap: %q", drawn)
		}
	}
	e.print("\x1b[H\x1b[J")
	e.print("$ ")
}

func TestPicturesHaveAGapWhereLinesAreLost(t *testing.T) {
	e := newEasel(t, 40, 6)
	e.print("first\n")
	for n := range 5000 {
		e.write(fmt.Sprintf("line %d\n", n))
	}
	if drawn := e.print("$ "); strings.Count(drawn, "Gap=unknown;n") != 1 {
		t.Errorf("no gap in %.300q", drawn)
	}
	for n := range 500 {
		e.write(fmt.Sprintf("more %d\n", n))
	}
	if drawn := e.print("$ "); strings.Contains(drawn, "Gap") || strings.Count(drawn, "more ") != 500 {
		t.Errorf("lines that are still above the screen are lost: %.300q", drawn)
	}
}

func TestPicturesOfAPaneThatIsResized(t *testing.T) {
	e := newEasel(t, 40, 6)
	for n := range 9 {
		e.print(fmt.Sprintf("line %d\n", n))
	}
	e.size = pty.Size{Cols: 20, Rows: 8}
	e.tall = nil
	e.pane.Resize(20, 8)
	e.shown.Resize(20, 8) // which the mark tells the terminal
	if drawn := e.print("$ "); !strings.HasPrefix(drawn, "\x1b]633;P;Size=20x8;n") {
		t.Errorf("the new size is not told in %q", drawn)
	}
}

// FuzzPictures draws what a random program prints, in pictures at random moments.
func FuzzPictures(f *testing.F) {
	f.Add([]byte("one\ntwo\n\x00three\x1b[2Jfour\x00\n\n\n\n\n\n\n\n\n\x00end"))
	f.Add([]byte("\x1b[?1049hfull\x00\x1b[2;2Hscreen\x00\x1b[?1049l$ \x00"))
	f.Add([]byte("目录🙂\x00\x1b[41m   \x1b[K\x00\x1b[m\r\n0123456789012345678901234567890123456789012345678901234567890123456789"))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 4096 {
			return
		}
		e := newEasel(t, 20, 5)
		e.tall = nil
		for text := range strings.SplitSeq(string(program), "\x00") {
			e.print(text)
		}
	})
}
