package holder

import (
	"errors"
	"fmt"
	"os"
)

var (
	// ErrInUse is returned by Spawn when a holder with this id is there.
	ErrInUse = errors.New("a holder with this id exists")
	// ErrGone is returned by Dial when there is no holder with this id.
	ErrGone = errors.New("no such holder")
	// ErrRunning is returned by Forget before the exit.
	ErrRunning = errors.New("the terminal's program has not ended")
	// ErrNoSignal is returned by Signal for a holder that is too old to send signals.
	ErrNoSignal = errors.New("this terminal's holder is too old to send signals")
	// ErrNoDrop is returned by Drop for a holder that is too old to drop output.
	ErrNoDrop = errors.New("this terminal's holder is too old to drop output")
	// ErrReplaced is the error of a Client that another daemon has replaced.
	ErrReplaced = errors.New("another daemon has taken over this terminal")
	// ErrLost is the error of a Client whose holder has ended without a message.
	ErrLost = errors.New("the holder is gone")
	// ErrDetached is the error of a Client after Close. It wraps os.ErrClosed.
	ErrDetached = fmt.Errorf("detached from the holder: %w", os.ErrClosed)
)

// GapError is returned by Client.Read, once, where output is missing: nobody took it for
// so long that the holder's log was full. The next Read continues at To.
type GapError struct{ From, To int64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("%d bytes of output were lost", e.To-e.From)
}

// Gap returns From and To.
func (e *GapError) Gap() (from, to int64) { return e.From, e.To }
