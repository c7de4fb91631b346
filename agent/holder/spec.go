package holder

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tether/platform/pty"
)

// Spec describes the child of a holder. Zero values mean the stated defaults.
type Spec struct {
	// ID names the holder: 1 to 64 letters, digits, '-' and '_', never used before in its
	// directory.
	ID string
	// Command is run as pty.Start does. Dir "" and a relative Dir start from the
	// directory of Spawn's caller.
	Command pty.Command
	// LogBytes bounds the log, 64 KiB to 1 GiB, default 4 MiB, rounded up to a power of
	// two. Memory is taken as it fills.
	LogBytes int
	// Meta is the daemon's, at most 64 KiB. The holder does not look into it.
	Meta []byte
	// AwayHold is how long a log full of bytes that no daemon took holds the child while
	// none is connected, default 30 s.
	AwayHold time.Duration
	// Stall is the same for a daemon that is connected but takes nothing, default 10 s.
	// One that reads every half of it is never too slow.
	Stall time.Duration
	// KeepExited is how long the exit, the log and the meta wait for a daemon, default 24
	// h.
	KeepExited time.Duration
}

const (
	maxID       = 64
	minLogBytes = 64 << 10 // two of pump's reads
	maxLogBytes = 1 << 30
)

func validID(id string) bool {
	bad := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	}
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, bad)
}

func (s Spec) withDefaults() (Spec, error) {
	switch {
	case !validID(s.ID):
		return s, fmt.Errorf("holder id %.80q: must be 1 to %d letters, digits, '-' or '_'", s.ID, maxID)
	case len(s.Meta) > maxBlob:
		return s, tooLarge("meta", len(s.Meta), maxBlob)
	}
	dir, err := filepath.Abs(s.Command.Dir)
	if err != nil {
		return s, err
	}
	s.Command.Dir = dir
	s.Command.Size.Cols = cmp.Or(s.Command.Size.Cols, pty.DefaultSize.Cols)
	s.Command.Size.Rows = cmp.Or(s.Command.Size.Rows, pty.DefaultSize.Rows)
	s.LogBytes = min(max(cmp.Or(s.LogBytes, 4<<20), minLogBytes), maxLogBytes)
	s.AwayHold = cmp.Or(s.AwayHold, 30*time.Second)
	s.Stall = cmp.Or(s.Stall, 10*time.Second)
	s.KeepExited = cmp.Or(s.KeepExited, 24*time.Hour)
	return s, nil
}

func tooLarge(what string, n, most int) error {
	return fmt.Errorf("%s of %d bytes: at most %d are allowed", what, n, most)
}
