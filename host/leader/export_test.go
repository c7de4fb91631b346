package leader

import "time"

// MaxTaken is exported for tests.
const MaxTaken = maxTaken

// Taken returns first of a new taken.
func Taken() func(id string, at time.Time) bool { return new(taken).first }
