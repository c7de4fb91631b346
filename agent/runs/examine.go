package runs

import (
	"time"

	"tether/agent/history"
)

// examiner looks at what the runs of one terminal print. It belongs to the recorder's
// goroutine.
type examiner struct{}

func (x *recording) newExaminer() examiner { return examiner{} }

// begin says that a run begins, or goes on in another daemon: the terminal, or a command
// in it.
func (e *examiner) begin(run history.Run) {}

// text is text at an offset, which follows on the text before.
func (e *examiner) text(off int64, p []byte, now time.Time) {}

// lost says that so many bytes follow that nobody knows.
func (e *examiner) lost(n int64) {}

// end completes the record of a run that has ended.
func (e *examiner) end(run *history.Run) {}
