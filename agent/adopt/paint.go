package adopt

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"tether/platform/pty"
	"tether/screen"
)

// maxPast bounds a picture with the lines above the screen, in rows. It is the largest
// height that an emulator has.
const maxPast = maxSide

// picture is what a pane shows at one moment.
type picture struct {
	size   pty.Size
	text   []byte // rows joined by LF or CR LF, with colours
	cursor bool   // text ends at the cursor, or moves it
	title  string
	dir    string // absolute, or ""
}

// rows returns the last rows of p's text, at most height, each with its colours alone
// and without any other sequence, and the place of the cursor.
func (p picture) rows(height int) (rows []string, col, row int) {
	text := bytes.ReplaceAll(bytes.TrimSuffix(p.text, []byte("\n")), []byte("\r\n"), []byte("\n"))
	s := screen.NewState(int(p.size.Cols), height)
	s.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
	col, row = s.Cursor()
	rows = s.Coloured()
	for i := range rows {
		if strings.TrimSpace(rows[i]) == "" {
			rows[i] = ""
		}
	}
	return rows, col, row
}

// painter draws pictures on a terminal so that its text is what the pane printed as far
// as the pictures tell: lines that scrolled are printed once, below each other, and
// only rows that differ are drawn again. Not safe for concurrent use.
type painter struct {
	w     io.Writer
	nonce string // of the marks

	size  pty.Size
	title string
	dir   string
	shown []string // rows as drawn, size.Rows of them; nil before the first picture
	above string   // the row that scrolled off last
	at    int      // row of the cursor
	out   bytes.Buffer
}

// draw draws the picture next. past asks for a picture with the lines above the screen,
// which is needed for the first picture and where next has nothing in common with the
// one before. If those do not tell either what was printed in between, draw shows a
// gap.
func (p *painter) draw(next picture, past func() (picture, error)) error {
	p.out.Reset()
	rows, col, row := next.rows(int(next.size.Rows))
	rows = padded(rows, int(next.size.Rows))
	switch first := p.shown == nil; {
	case first || next.size != p.size:
		p.resized(next.size)
		if !first {
			p.scroll(rows, 0)
			break
		}
		if more, err := past(); err == nil {
			rows = joined(more, rows)
		}
		p.shown = make([]string, next.size.Rows)
		p.scroll(rows, 0)
	default:
		if shift, ok := align(p.shown, rows); ok {
			p.scroll(rows, shift)
			break
		}
		p.leap(rows, past)
	}
	p.describe(next)
	if next.cursor {
		fmt.Fprintf(&p.out, "\x1b[%d;%dH", row+1, col+1)
		p.at = row
	}
	_, err := p.w.Write(p.out.Bytes())
	return err
}

// leap goes on with rows, which have nothing in common with what is shown.
func (p *painter) leap(rows []string, past func() (picture, error)) {
	more, err := past()
	if err != nil {
		p.scroll(rows, 0)
		return
	}
	all := joined(more, rows)
	above := len(all) - len(rows)
	if shift, ok := align(p.shown, all); ok {
		p.scroll(all, shift)
		return
	}
	if above == 0 || all[above-1] == p.above {
		p.scroll(rows, 0) // nothing left the screen: the program has drawn it anew
		return
	}
	p.mark("Gap", "unknown")
	p.scroll(append([]string{gapLine}, rows...), -len(rows))
}

// changes reports whether next differs from what is shown in more than its text.
func (p *painter) changes(next picture) bool {
	return next.size != p.size || next.title != p.title || next.dir != p.dir && next.dir != ""
}

// scroll draws rows, of which the last ones are the screen. What is shown is in them
// from the row shift on; with a negative shift, its first rows have scrolled off since.
func (p *painter) scroll(rows []string, shift int) {
	height, left := len(p.shown), 0 // left: the rows that have left the screen by now
	for i := max(shift, 0); i < len(rows); i++ {
		y := i - shift - left
		switch {
		case y >= height:
			if p.at != height-1 {
				p.row(height - 1)
			}
			p.out.WriteString("\r\n" + rows[i])
			p.above, left = p.shown[0], left+1
			copy(p.shown, p.shown[1:])
			p.shown[height-1] = rows[i]
		case p.shown[y] != rows[i]:
			if p.row(y); p.shown[y] != "" {
				p.out.WriteString("\x1b[2K")
			}
			p.out.WriteString(rows[i])
			p.shown[y] = rows[i]
		}
	}
}

// row moves the cursor to the start of a row: by a new line if it is the next one, so
// that the text is that of a program that prints line after line.
func (p *painter) row(y int) {
	if y == p.at+1 {
		p.out.WriteString("\r\n")
	} else {
		fmt.Fprintf(&p.out, "\x1b[%d;1H", y+1)
	}
	p.at = y
}

// resized begins anew on a screen of another size.
func (p *painter) resized(s pty.Size) {
	p.size, p.at = s, 0
	p.mark("Size", fmt.Sprintf("%dx%d", s.Cols, s.Rows))
	if p.shown != nil {
		p.out.WriteString("\x1b[H\x1b[J")
		p.shown = make([]string, s.Rows)
	}
}

// describe tells the title and the directory if they have changed.
func (p *painter) describe(next picture) {
	if next.title != p.title {
		p.title = next.title
		fmt.Fprintf(&p.out, "\x1b]2;%s\x1b\\", p.title)
	}
	if next.dir != p.dir && next.dir != "" {
		p.dir = next.dir
		p.mark("Cwd", p.dir)
	}
}

func (p *painter) mark(key, value string) { p.out.Write(appendMark(nil, key, value, p.nonce)) }

// joined returns the rows of more, a picture with the lines above the screen. The last
// of them are the screen, on which as many rows are blank at the bottom as in rows.
func joined(more picture, rows []string) []string {
	all, _, _ := more.rows(maxPast)
	for n := len(rows); n > 0 && rows[n-1] == ""; n-- {
		all = append(all, "")
	}
	return padded(all, len(rows))
}

func padded(rows []string, height int) []string {
	for len(rows) < height {
		rows = append(rows, "")
	}
	return rows
}

// align returns where in rows the rows shown are, see painter.scroll: the place where
// most of them are the same, and at least half of those that can be compared; of
// several the one that leaves most in place. ok is false if there is none.
func align(shown, rows []string) (shift int, ok bool) {
	most, stay := 0, len(rows)-len(shown)
	for s := stay; s > -len(shown); s-- {
		same, all := 0, 0
		for i, row := range shown {
			if row == "" || i+s < 0 || i+s >= len(rows) {
				continue
			}
			if all++; rows[i+s] == row {
				same++
			}
		}
		if same > most && 2*same >= all {
			shift, most = s, same
		}
	}
	if blank := !slices.ContainsFunc(shown, func(row string) bool { return row != "" }); blank {
		return stay, true
	}
	return shift, most > 0
}
