package access

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"tether/host"
)

const (
	fileVersion = 1
	// maxTokens bounds the file, and the cost of a request with a token.
	maxTokens = 10_000
	maxName   = 64 // bytes of a principal's name
	// lockTries and lockPause bound how long a command waits for another one that changes the file: 5 s.
	lockTries, lockPause = 100, 50 * time.Millisecond
)

// record is the stored form of a token, or of a machine that is paired by its key.
type record struct {
	ID        string     `json:"id"` // names it without revealing it
	Principal string     `json:"principal"`
	Role      host.Role  `json:"role"`
	SHA256    []byte     `json:"sha256,omitempty"`
	Once      bool       `json:"once,omitempty"`       // a pairing token
	DeviceKey []byte     `json:"device_key,omitempty"` // instead of SHA256
	Pairing   []byte     `json:"pairing,omitempty"`    // identifies the request that a person approved, see AddDevice
	Owner     string     `json:"owner,omitempty"`      // id of the person who owns it; empty: the administrator
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires,omitempty"`
}

// expired reports whether the record has expired.
func (r *record) expired(now time.Time) bool { return r.Expires != nil && !now.Before(*r.Expires) }

// opens reports whether the record has exactly one way to admit its principal.
func (r *record) opens() bool {
	if r.DeviceKey != nil {
		return len(r.DeviceKey) == ed25519.PublicKeySize && r.SHA256 == nil && !r.Once
	}
	return len(r.SHA256) == sha256.Size
}

// key identifies the record.
func (r *record) key() string {
	if r.DeviceKey != nil {
		return deviceKey(r.DeviceKey)
	}
	return "token " + string(r.SHA256)
}

// tokensFile is the content of the document.
type tokensFile struct {
	Version int      `json:"version"`
	Tokens  []record `json:"tokens"`
}

// load reads the records; there are none if the document is missing.
func load(at Place) ([]record, error) {
	data, err := at.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return parse(at, data)
}

func parse(at Place, data []byte) ([]record, error) {
	var f tokensFile
	if err := decode(at, data, fileVersion, &f); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	for _, r := range f.Tokens {
		if checkName(r.Principal) != nil || checkRole(r.Role) != nil || !r.opens() || r.ID == "" {
			return nil, fmt.Errorf("tokens: %s: the entry %.40q of %.80q is not a token; remove it", at, r.ID, r.Principal)
		}
	}
	return f.Tokens, nil
}

// changeError is an error of the change itself, as opposed to one of storing the document.
type changeError struct{ error }

// changeAt changes a document. It prefixes an error of storing it with what, the name of its contents.
func changeAt(at Place, what string, do func(old []byte) ([]byte, error)) error {
	err := at.Change(do)
	if said, ok := errors.AsType[changeError](err); ok {
		return said.error
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// change lets f alter the records while nobody else does.
func change(at Place, f func([]record) ([]record, error)) error {
	return changeAt(at, "tokens", func(old []byte) ([]byte, error) {
		var all []record
		if old != nil {
			var err error
			if all, err = parse(at, old); err != nil {
				return nil, changeError{err}
			}
		}
		all, err := f(all)
		if err != nil {
			return nil, changeError{err}
		}
		data, err := json.MarshalIndent(tokensFile{Version: fileVersion, Tokens: all}, "", "  ")
		return append(data, '\n'), err
	})
}

// Check checks a principal's name and role.
func Check(principal string, role host.Role) error {
	return cmp.Or(checkName(principal), checkRole(role))
}

// checkName checks a principal's name. Names are shown in lists and logs, so only plain characters are allowed.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name has 1 to %d characters", maxName)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '-' && r != '_' && r != '.' && r != '@') {
			return fmt.Errorf("the name %.80q must begin with a letter or digit and hold nothing but those and - _ . @", name)
		}
	}
	return nil
}

func checkRole(role host.Role) error {
	if !slices.Contains(host.Roles(), role) {
		return fmt.Errorf("unknown role %.40q: use one of %v", role, host.Roles())
	}
	return nil
}
