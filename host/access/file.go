package access

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"tether/host/rights"
)

const (
	fileVersion = 1
	// maxTokens bounds the file, and the cost of a request with a token.
	maxTokens = 10_000
	maxName   = 64 // bytes of a principal's name
	// lockTries and lockPause bound how long a command waits for another one that changes
	// the file: 5 s.
	lockTries, lockPause = 100, 50 * time.Millisecond
)

// record is the stored form of a token, or of a machine that is paired by its key.
type record struct {
	ID        string      `json:"id"` // names it without revealing it
	Principal string      `json:"principal"`
	Role      rights.Role `json:"role"`
	SHA256    []byte      `json:"sha256,omitempty"`
	Once      bool        `json:"once,omitempty"`       // a pairing token
	DeviceKey []byte      `json:"device_key,omitempty"` // instead of SHA256
	Pairing   []byte      `json:"pairing,omitempty"`    // identifies the request that a person approved, see AddDevice
	Owner     string      `json:"owner,omitempty"`      // id of the person who owns it; empty: the administrator
	Created   time.Time   `json:"created"`
	Expires   *time.Time  `json:"expires,omitempty"`
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

// tokensDoc returns the document of the records.
func tokensDoc(at Place) Doc[tokensFile] {
	return Doc[tokensFile]{At: at, What: "tokens", Version: fileVersion, Empty: tokensFile{Version: fileVersion}, Indent: true, Check: (*tokensFile).check}
}

func (f *tokensFile) check() error {
	for _, r := range f.Tokens {
		if checkName(r.Principal) != nil || checkRole(r.Role) != nil || !r.opens() || r.ID == "" {
			return fmt.Errorf("the entry %.40q of %.80q is not a token", r.ID, r.Principal)
		}
	}
	return nil
}

// records returns the present records, which the caller must not change.
func (t *Tokens) records() ([]record, error) {
	f, err := t.doc.Now()
	if err != nil {
		return nil, err
	}
	return f.Tokens, nil
}

// change lets f alter the records while nobody else does.
func (t *Tokens) change(f func([]record) ([]record, error)) error {
	return t.doc.Change(func(file *tokensFile) (err error) {
		file.Tokens, err = f(file.Tokens)
		return err
	})
}

// Check checks a principal's name and role.
func Check(principal string, role rights.Role) error {
	return cmp.Or(checkName(principal), checkRole(role))
}

// checkName checks a principal's name. Names are shown in lists and logs, so only plain
// characters are allowed.
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

func checkRole(role rights.Role) error {
	if !slices.Contains(rights.Roles(), role) {
		return fmt.Errorf("unknown role %.40q: use one of %v", role, rights.Roles())
	}
	return nil
}
