package screen

// A program's output decides how much work is done: a few bytes can touch each cell of
// the screen. So work is paid for: each byte earns some, unused credit is saved up to a
// bound, and operations without credit are left out, after which the screen is in doubt.
// No real program comes near.
const (
	effortPerByte = 128
	effortSaved   = 4 << 20 // four times all cells of the largest screen
	effortPiece   = 8 << 10 // number of bytes for which credit is earned at once; they earn less than can be saved
)

// effort counts the work, in cells, that bytes have earned and that was not done yet.
type effort struct {
	left int
	done int // cells of work done since the beginning, for tests
}

// earn adds the credit for n bytes that are about to be interpreted.
func (e *effort) earn(n int) { e.left = min(e.left+n*effortPerByte, effortSaved) }

// afford pays for work on so many cells. If it reports false, the caller must leave the
// work out.
func (s *Screen) afford(cells int) bool {
	if cells > s.effort.left {
		s.Doubt()
		return false
	}
	s.effort.left -= cells
	s.effort.done += cells
	return true
}

// lineCells is how many rows can be moved as wholes for the price of a cell.
const lineCells = 8

// affordLines is afford for work on whole rows: rows are moved or erased, and fresh rows
// come in or go.
func (s *Screen) affordLines(rows, fresh int) bool { return s.afford(rows/lineCells + fresh + 1) }
