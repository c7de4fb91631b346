package screen

// A program's output decides how much work is done: a few bytes can touch each cell of the screen. So work is paid for: each byte earns
// some, unused credit is saved up to a bound, and operations without credit are left out, after which the screen is in doubt. No real
// program comes near.
const (
	effortPerByte = 128
	effortSaved   = 4 << 20 // four times all cells of the largest screen
	effortPiece   = 8 << 10 // bytes that earn at once: less than can be saved
)

// effort counts the work that bytes have earned and that is not done, in cells.
type effort struct {
	left int
	done int // in all, for tests
}

// earn is for n bytes that are about to be interpreted.
func (e *effort) earn(n int) { e.left = min(e.left+n*effortPerByte, effortSaved) }

// afford pays for work on so many cells. Where it reports false that must be left out.
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

// affordLines is afford for rows that are moved or erased as wholes, and those that come in or go.
func (s *Screen) affordLines(rows, fresh int) bool { return s.afford(rows/lineCells + fresh + 1) }
