package proc

import "time"

const (
	pauseFirst = time.Millisecond      // between two looks at the process table, doubled each time
	pauseLast  = 50 * time.Millisecond // up to this: a look costs some milliseconds of CPU
)
