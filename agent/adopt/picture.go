package adopt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tether/platform/pty"
	"tether/screen"
)

// state is what a pane shows, at one place in its output.
type state struct {
	numbers map[string]int // by format
	tabs    []int          // columns with a tab stop, from 0
	title   string
	dir     string
	text    []string // history, and the screen if the main one is shown; wrapped lines are whole
	saved   []string // the main screen while the alternate one is shown
	rows    []string // the screen, row by row
	pending []byte   // the beginning of an unfinished sequence
}

// numberFormats are the formats of tmux that are numbers, in the order in which they are
// asked for. Those that a version does not know are empty.
var numberFormats = []string{
	"pid", "pane_pid", "pane_width", "pane_height", "pane_dead", "history_size", "cursor_x", "cursor_y",
	"alternate_on", "alternate_saved_x", "alternate_saved_y", "scroll_region_upper", "scroll_region_lower",
	"cursor_flag", "insert_flag", "keypad_cursor_flag", "keypad_flag", "origin_flag", "wrap_flag",
	"mouse_standard_flag", "mouse_button_flag", "mouse_all_flag", "mouse_utf8_flag", "mouse_sgr_flag", "bracket_paste_flag",
}

// maxHistory is how many lines that have left the screen are taken.
const maxHistory = 10000

// stateCommands returns the commands whose output parseState reads.
func stateCommands(pane string, alternate bool) []string {
	format := "#{" + strings.Join(numberFormats, "},#{") + "}"
	show := func(f string) string { return "display-message -p -t " + pane + " '" + f + "'" }
	capture := "capture-pane -p -t " + pane
	text := capture + " -e -J -S -" + strconv.Itoa(maxHistory)
	if alternate {
		text += " -E -1"
	}
	return []string{show(format), show("#{pane_tabs}"), show("#{?#{==:#{pane_title},#{host}},,#{pane_title}}"), show("#{pane_current_path}"),
		text, capture + " -e -J -a -q", capture + " -e -N", capture + " -P -C"}
}

// parseState reads the parts of the reply to stateCommands and perhaps others. It returns
// nil if they cannot be understood.
func parseState(parts []part) *state {
	if len(parts) < 8 {
		return nil
	}
	s := &state{title: parts[2].text(), dir: parts[3].text()}
	var ok bool
	if s.numbers, ok = parseNumbers(parts[0].text()); !ok {
		return nil
	}
	for _, n := range strings.Split(parts[1].text(), ",") {
		if n, err := strconv.Atoi(n); err == nil && n >= 0 && len(s.tabs) < maxSide {
			s.tabs = append(s.tabs, n)
		}
	}
	s.text, s.saved, s.rows = parts[4].styled(), parts[5].styled(), parts[6].styled()
	if s.has("alternate_on") && s.numbers["history_size"] == 0 {
		s.text = nil // tmux then takes the first row of the screen for the last one above it
	}
	s.pending = unescape([]byte(parts[7].text()))
	return s
}

func parseNumbers(text string) (map[string]int, bool) {
	fields := strings.Split(text, ",")
	if len(fields) != len(numberFormats) {
		return nil, false
	}
	numbers := map[string]int{}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil && f != "" || n < 0 {
			return nil, false
		}
		numbers[numberFormats[i]] = n
	}
	return numbers, numbers["pane_width"] > 0 && numbers["pane_height"] > 0
}

func (s *state) has(format string) bool { return s.numbers[format] != 0 }

// maxSide bounds a side of the picture, in cells, as package screen does.
const maxSide = 1000

func (s *state) size() pty.Size {
	return sizeOf(s.numbers["pane_width"], s.numbers["pane_height"])
}

// draw returns bytes that make a terminal of the pane's size show what the pane shows.
// The terminal is new, or again says that it has shown the pane before: its contents then
// move up, out of the screen, and the pane's history is not shown again.
func (s *state) draw(again bool) []byte {
	var b strings.Builder
	size := s.size()
	if again {
		b.WriteString("\x1b[?1049l\x1b[?6l\x1b[4l\x1b[?7h\x1b[r\x1b[m\x1b(B\x0f\x1b[?1l\x1b>\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?2004l")
		fmt.Fprintf(&b, "\x1b[%d;1H\r\n", size.Rows)
	}
	b.WriteString("\x1b)0") // captures have characters of this set after SO
	var at *screen.Screen   // a terminal that shows what is drawn, if the cursor may stay
	if s.has("alternate_on") {
		s.drawMain(&b, slices.Concat(s.text, s.saved), s.saved, again)
		fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[?1049h", s.numbers["alternate_saved_y"]+1, s.numbers["alternate_saved_x"]+1)
		b.WriteString(s.absolute())
	} else {
		at = s.drawMain(&b, s.text, s.rows, again)
	}
	b.WriteString("\x1b)B")
	s.setModes(&b, at)
	b.Write(s.pending)
	return []byte(b.String())
}

// drawMain draws the main screen: line after line, so that what has left the screen is
// above it, and wrapped lines are wrapped again. It returns a terminal that shows them.
func (s *state) drawMain(b *strings.Builder, text, rows []string, again bool) *screen.Screen {
	if again { // exactly the rows of the screen, which move everything else up
		b.WriteString(strings.Join(rows, "\r\n"))
		b.WriteString(strings.Repeat("\r\n", max(0, int(s.size().Rows)-len(rows))))
		return nil
	}
	if s.numbers["history_size"] == 0 {
		for len(text) > 0 && text[len(text)-1] == "" {
			text = text[:len(text)-1]
		}
	}
	lines := strings.Join(text, "\r\n")
	b.WriteString(lines)
	if s.has("alternate_on") {
		return nil
	}
	// A line that tmux calls wrapped may have got shorter. Then rows are not where they
	// are there.
	got, want := screen.NewState(s.dims()), screen.NewState(s.dims())
	got.Advance([]byte("\x1b)0" + lines))
	want.Advance([]byte("\x1b)0" + s.absolute()))
	if got.Text() != want.Text() {
		b.WriteString("\x1b[H\x1b[2J" + s.absolute())
		return nil
	}
	return got
}

func (s *state) dims() (cols, rows int) { return int(s.size().Cols), int(s.size().Rows) }

// absolute draws the rows of the screen, each at its place, on an empty one.
func (s *state) absolute() string {
	var b strings.Builder
	for i, row := range s.rows {
		if row != "" {
			fmt.Fprintf(&b, "\x1b[%d;1H%s", i+1, row)
		}
	}
	return b.String()
}

// redraw returns bytes that draw the screen anew on a terminal that shows it with another
// size: each row at its place, without moving what is shown. A terminal breaks lines anew
// and brings lines back from above in its own way, unlike tmux. The colours that the
// program has set stay; only the place that it has saved (DECSC) is lost.
func (s *state) redraw() []byte {
	var b strings.Builder
	b.WriteString("\x1b7\x1b[?6l\x1b[4l\x1b[?7h\x1b[r\x1b[m\x1b(B\x0f\x1b)0")
	_, rows := s.dims()
	for y := range rows {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", y+1)
		if y < len(s.rows) {
			b.WriteString(s.rows[y])
		}
	}
	b.WriteString("\x1b)B\x1b8")
	s.setModes(&b, nil)
	b.Write(s.pending)
	return []byte(b.String())
}

// modeSequences set what is not set on a new terminal.
var modeSequences = []struct {
	format string
	value  bool // for which the sequence is needed
	set    string
}{
	{"insert_flag", true, "\x1b[4h"}, {"wrap_flag", false, "\x1b[?7l"}, {"origin_flag", true, "\x1b[?6h"},
	{"keypad_cursor_flag", true, "\x1b[?1h"}, {"keypad_flag", true, "\x1b="}, {"cursor_flag", false, "\x1b[?25l"},
	{"mouse_standard_flag", true, "\x1b[?1000h"}, {"mouse_button_flag", true, "\x1b[?1002h"}, {"mouse_all_flag", true, "\x1b[?1003h"},
	{"mouse_utf8_flag", true, "\x1b[?1005h"}, {"mouse_sgr_flag", true, "\x1b[?1006h"}, {"bracket_paste_flag", true, "\x1b[?2004h"},
}

// setModes sets tab stops, the scrolling region, modes and the cursor, on a terminal that
// has none of them. If at is not nil, the cursor is where it is there: it is not moved
// without need, since a move begins another line for whoever reads lines.
func (s *state) setModes(b *strings.Builder, at *screen.Screen) {
	cols, rows := s.dims()
	usual := []int{}
	for n := 8; n < cols; n += 8 {
		usual = append(usual, n)
	}
	if !slices.Equal(s.tabs, usual) {
		b.WriteString("\x1b[3g")
		for _, n := range s.tabs {
			fmt.Fprintf(b, "\x1b[%dG\x1bH", n+1)
		}
		at = nil
	}
	top, bottom := s.numbers["scroll_region_upper"], s.numbers["scroll_region_lower"]
	if top > 0 || bottom > 0 && bottom < rows-1 {
		fmt.Fprintf(b, "\x1b[%d;%dr", top+1, bottom+1)
		at = nil
	} else {
		top = 0
	}
	// Behind the last column, the cursor has to print it once more to be there.
	col, row := s.numbers["cursor_x"], s.numbers["cursor_y"]
	if col >= cols && row < len(s.rows) {
		fmt.Fprintf(b, "\x1b)0\x1b[%d;1H%s\x1b)B", row+1, s.rows[row])
	}
	for _, m := range modeSequences {
		if s.has(m.format) == m.value {
			b.WriteString(m.set)
		}
	}
	if s.has("origin_flag") {
		row -= top
	}
	if at != nil {
		if x, y := at.Cursor(); x == col && y == row && col < cols-1 { // there, it may be behind the last column
			return
		}
	}
	if col < cols {
		fmt.Fprintf(b, "\x1b[%d;%dH", row+1, col+1)
	}
}
