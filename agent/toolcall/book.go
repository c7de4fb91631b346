package toolcall

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"tether/ahp"
	"tether/platform/secret"
)

// maxBegun bounds the calls that are remembered, here and by a Desk. A host that repeats
// an older call could just as well have invented a new one.
const maxBegun = 1024

// key identifies a call permanently: a hash of everything that identifies it at the host.
type key string

func keyOf(session string, r ahp.InputRequest) key {
	h := sha256.New()
	for _, part := range []string{session, r.Chat, r.TurnID, r.ToolCall.ToolCallID} {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return key(hex.EncodeToString(h.Sum(nil)[:16]))
}

// book remembers, across daemons, which calls have begun. It is safe for concurrent use.
type book struct {
	path string // "" keeps it in memory

	mu    sync.Mutex
	read  bool
	begun []key // oldest first
}

// bookFile is the contents of a book's file.
type bookFile struct {
	Version int   `json:"version"`
	Begun   []key `json:"begun"`
}

const bookVersion = 1

// loadLocked reads the file before anything else is done.
func (b *book) loadLocked() error {
	if b.read || b.path == "" {
		return nil
	}
	var f bookFile
	err := secret.ReadJSON(b.path, bookVersion, &f)
	if errors.Is(err, fs.ErrNotExist) {
		b.read = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("calls that have begun: %w", err)
	}
	b.read, b.begun = true, f.Begun
	return nil
}

// errBegun is returned by begin for a call that has begun before.
var errBegun = errors.New("the call has begun before")

// begin records that the call begins. When it returns nil, the record is on the disk, if
// the book has a file.
func (b *book) begin(k key) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.loadLocked(); err != nil {
		return err
	}
	if slices.Contains(b.begun, k) {
		return errBegun
	}
	begun := append(slices.Clone(b.begun), k)
	begun = begun[max(0, len(begun)-maxBegun):]
	if b.path != "" {
		err := secret.Dir(filepath.Dir(b.path))
		if err == nil {
			err = secret.WriteJSON(b.path, bookFile{bookVersion, begun})
		}
		if err != nil {
			return fmt.Errorf("note that the call begins: %w", err)
		}
	}
	b.begun = begun
	return nil
}
