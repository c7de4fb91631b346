package volume

import (
	"os"
	"time"
)

const flags = 0 // there are no named pipes among files, and links need a right

func mounts() []string { return nil } // every absolute path has a volume's name

// Changed returns when a file's content or attributes were last changed; ok is false if
// the system does not tell.
func Changed(os.FileInfo) (at time.Time, ok bool) { return at, false }
