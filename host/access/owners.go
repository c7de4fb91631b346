package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"tether/platform/secret"
)

const (
	// maxOwned is how many clientIds of one principal are kept: a machine has one, and
	// gets another each time it is set up anew.
	maxOwned = 16
	// maxStale is how many obsolete lines the file may have before it is rewritten.
	maxStale = 1000
	maxLine  = 4 << 10 // bytes; a clientId has at most 256
)

// Owners records in a file which principal each clientId belongs to, so that nobody can
// take another's clientId right after a restart of the host. Each new clientId adds a
// line. It implements rights.Owners, and is safe for concurrent use.
type Owners struct {
	path   string  // set once
	tokens *Tokens // set once: a principal without a token owns nothing

	writing sync.Mutex // held while the file is changed
	lines   int        // in the file; guarded by writing

	mu sync.Mutex
	of map[string]string   // principals by clientId
	by map[string][]string // clientIds by principal, oldest first
}

// owned is a line of the file.
type owned struct {
	Client    string `json:"client"`
	Principal string `json:"principal"`
}

// OpenOwners reads a file, which may be missing. It ignores a line that a crash has cut
// off.
func OpenOwners(path string, tokens *Tokens) (*Owners, error) {
	o := &Owners{path: path, tokens: tokens, of: map[string]string{}, by: map[string][]string{}}
	f, err := secret.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return nil, fmt.Errorf("owners of clientIds: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		o.lines++
		var one owned
		if json.Unmarshal(lines.Bytes(), &one) != nil || one.Client == "" || checkName(one.Principal) != nil {
			continue // cut off: that clientId belongs to the first client that uses it, as if it were new
		}
		o.mu.Lock()
		o.keepLocked(one.Client, one.Principal)
		o.mu.Unlock()
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("owners of clientIds: %s: %w; repair it, or remove it", path, err)
	}
	return o, nil
}

// Owner implements rights.Owners. A clientId of a principal without a token belongs to
// nobody.
func (o *Owners) Owner(clientID string) (principal string, ok bool) {
	o.mu.Lock()
	principal, ok = o.of[clientID]
	o.mu.Unlock()
	return principal, ok && o.tokens.Knows(principal)
}

// Own implements rights.Owners.
func (o *Owners) Own(clientID, principal string) (bool, error) {
	o.writing.Lock()
	defer o.writing.Unlock()
	if owner, ok := o.Owner(clientID); ok {
		return owner == principal, nil
	}
	o.mu.Lock()
	o.keepLocked(clientID, principal)
	stale := o.lines - len(o.of)
	o.mu.Unlock()
	if stale > maxStale {
		return true, o.rewrite()
	}
	return true, o.append(owned{clientID, principal})
}

// keepLocked records the owner of a clientId. If the principal has too many, it drops the
// oldest.
func (o *Owners) keepLocked(clientID, principal string) {
	if before, ok := o.of[clientID]; ok {
		o.by[before] = slices.DeleteFunc(o.by[before], func(id string) bool { return id == clientID })
	}
	o.of[clientID] = principal
	ids := append(o.by[principal], clientID)
	if len(ids) > maxOwned {
		delete(o.of, ids[0])
		ids = slices.Delete(ids, 0, 1)
	}
	o.by[principal] = ids
}

// append adds a line. It writes a newline first, in case a crash has cut off the line
// before.
func (o *Owners) append(one owned) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := secret.Dir(filepath.Dir(o.path)); err != nil {
		return fmt.Errorf("owners of clientIds: %w", err)
	}
	f, err := secret.OpenAppend(o.path)
	if err != nil {
		return fmt.Errorf("owners of clientIds: %w", err)
	}
	_, err = f.Write(append(append([]byte{'\n'}, line...), '\n'))
	o.lines++
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("owners of clientIds: %w", err)
	}
	return nil
}

// rewrite replaces the file by one without obsolete lines.
func (o *Owners) rewrite() error {
	var all bytes.Buffer
	lines := 0
	encoder := json.NewEncoder(&all)
	o.mu.Lock()
	for principal, ids := range o.by {
		for _, id := range ids {
			_ = encoder.Encode(owned{id, principal}) // writing to a buffer never fails
			lines++
		}
	}
	o.mu.Unlock()
	if err := secret.WriteFile(o.path, all.Bytes()); err != nil {
		return fmt.Errorf("owners of clientIds: %w", err)
	}
	o.lines = lines
	return nil
}

// Knows reports whether a principal has a token or is a paired machine.
func (t *Tokens) Knows(principal string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.grants {
		if g.Principal == principal {
			return true
		}
	}
	return false
}
