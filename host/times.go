package host

import (
	"time"

	"tether/ahp"
)

// maxPast bounds how long ago an owner may say that its terminal was started or has ended.
const maxPast = 366 * 24 * time.Hour

// plausible is the time that an owner says, if it may be true: not before earliest, not in the future, and no longer ago than
// maxPast. Otherwise its clock is wrong, or it says nothing, and the time is now.
func plausible(said, earliest time.Time) time.Time {
	now := time.Now()
	if said.After(now) || said.Before(earliest) || now.Sub(said) > maxPast {
		return now
	}
	return said
}

// timed is an action of a terminal's owner with a time that is plausible, and without anything else in _meta.
func (t *terminal) timed(a ahp.Action) ahp.Action {
	if x, ok := a.(ahp.TerminalExited); ok {
		x.Meta = ahp.AddTime(nil, ahp.ExitedKey, plausible(ahp.FindTime(x.Meta, ahp.ExitedKey), t.created))
		return x
	}
	return a
}
