package holder

import (
	"cmp"
	"slices"
)

const (
	maxCheckpoints     = 64
	maxCheckpointBytes = 1 << 20 // of all blobs together
)

// checkpoints are a daemon's notes, or screens, ascending by offset. The oldest one in
// the log and the newest are always kept; those in between are thinned out.
type checkpoints struct {
	all   []Checkpoint
	bytes int
}

// put adds c, and replaces a checkpoint at the same offset.
func (s *checkpoints) put(c Checkpoint) {
	at, same := slices.BinarySearchFunc(s.all, c.Off, func(x Checkpoint, off int64) int { return cmp.Compare(x.Off, off) })
	if same {
		s.bytes += len(c.Blob) - len(s.all[at].Blob)
		s.all[at] = c
	} else {
		s.bytes += len(c.Blob)
		s.all = slices.Insert(s.all, at, c)
	}
	for len(s.all) > maxCheckpoints || s.bytes > maxCheckpointBytes && len(s.all) > 2 {
		s.remove(s.leastMissed())
	}
}

// leastMissed returns the index of the checkpoint whose neighbours are closest to each
// other.
func (s *checkpoints) leastMissed() int {
	best := 1
	for i := 1; i < len(s.all)-1; i++ {
		if s.all[i+1].Off-s.all[i-1].Off < s.all[best+1].Off-s.all[best-1].Off {
			best = i
		}
	}
	return best
}

func (s *checkpoints) remove(i int) {
	s.bytes -= len(s.all[i].Blob)
	s.all = slices.Delete(s.all, i, i+1)
}

// trim drops notes before base: the output after them is not in the log any more. The
// newest is kept even then, because it says most about the lost output.
func (s *checkpoints) trim(base int64) {
	for len(s.all) > 1 && s.all[0].Off < base {
		s.remove(0)
	}
}

// forget drops all notes before base, even the newest.
func (s *checkpoints) forget(base int64) {
	for len(s.all) > 0 && s.all[0].Off < base {
		s.remove(0)
	}
}
