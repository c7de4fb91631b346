package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tether/host"
	"tether/platform/secret"
)

const (
	loginsVersion = 1
	// maxKeptLogins bounds the file, to less than the bound of secret.ReadFile. The oldest give way.
	maxKeptLogins = 2048
)

// Logins keeps browsers' logins in a file, so that a restart of the host logs nobody out. Of cookies and tokens it holds only hashes. It
// implements host.Logins, and is safe for concurrent use, also with other hosts that use the same file.
type Logins struct {
	path    string            // set once
	tokens  *Tokens           // set once
	own     [sha256.Size]byte // hash of the host's own token; set once
	onError func(error)       // set once

	sessions func([sha256.Size]byte) (host.Principal, bool) // set before use; nil: there are none

	mu   sync.Mutex // held while the file is changed
	read Version
	all  []keptLogin // as they were read or written last
}

// keptLogin is a record of the file.
type keptLogin struct {
	Cookie []byte    `json:"cookie_sha256"`
	Token  []byte    `json:"token_sha256"`
	Name   string    `json:"principal,omitempty"` // empty: the host's own token
	Until  time.Time `json:"until"`
}

// loginsFile is the content of the file.
type loginsFile struct {
	Version int         `json:"version"`
	Logins  []keptLogin `json:"logins"`
}

// OpenLogins keeps logins in a file, which may be missing: those by a token of tokens, and those by the host's own, unless that is empty
// because it differs after each start. A file that cannot be used is renamed, and onError is called.
func OpenLogins(path string, tokens *Tokens, own string, onError func(error)) *Logins {
	l := &Logins{path: path, tokens: tokens, onError: onError}
	if own != "" {
		l.own = sha256.Sum256([]byte(own))
	}
	return l
}

// Sessions makes l also keep logins by tokens that are not in the file: of finds the principal by the hash. It must be called before l is
// used.
func (l *Logins) Sessions(of func([sha256.Size]byte) (host.Principal, bool)) { l.sessions = of }

// Kept implements host.Logins. Expired logins are removed from the file, too.
func (l *Logins) Kept() []host.Login {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookLocked()
	var kept []host.Login
	for _, k := range l.all {
		if p, ok := l.principal(&k); ok {
			kept = append(kept, host.Login{Cookie: [sha256.Size]byte(k.Cookie), Token: [sha256.Size]byte(k.Token), Principal: p, Until: k.Until})
		}
	}
	if len(kept) < len(l.all) {
		if err := l.changeLocked(func(all []keptLogin) []keptLogin { return all }); err != nil {
			l.onError(err)
		}
	}
	return kept
}

// Keep implements host.Logins.
func (l *Logins) Keep(one host.Login) error {
	k := keptLogin{Cookie: one.Cookie[:], Token: one.Token[:], Name: one.Principal.Name, Until: one.Until.UTC()}
	if _, ok := l.principal(&k); !ok {
		return nil // its token ends with this run, or has ended
	}
	return l.change(func(all []keptLogin) []keptLogin { return append(all, k) })
}

// Drop implements host.Logins.
func (l *Logins) Drop(cookie [sha256.Size]byte) error {
	return l.change(func(all []keptLogin) []keptLogin {
		return slices.DeleteFunc(all, func(k keptLogin) bool { return bytes.Equal(k.Cookie, cookie[:]) })
	})
}

// principal returns whose a login is; ok is false if its time or its token has ended.
func (l *Logins) principal(k *keptLogin) (p host.Principal, ok bool) {
	switch {
	case !time.Now().Before(k.Until):
		return p, false
	case k.Name == "":
		return host.Principal{Role: host.RoleAdmin}, l.own != [sha256.Size]byte{} && bytes.Equal(k.Token, l.own[:])
	}
	l.tokens.mu.Lock()
	p, ok = l.tokens.ofHashLocked(k.Token)
	l.tokens.mu.Unlock()
	if !ok && l.sessions != nil {
		p, ok = l.sessions([sha256.Size]byte(k.Token))
	}
	return p, ok && p.Name == k.Name
}

// change applies f to the logins, removes expired ones, and writes the file if it differs.
func (l *Logins) change(f func([]keptLogin) []keptLogin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changeLocked(f)
}

func (l *Logins) changeLocked(f func([]keptLogin) []keptLogin) error {
	if err := secret.Dir(filepath.Dir(l.path)); err != nil {
		return fmt.Errorf("logins: %w", err)
	}
	held, err := lock(l.path + ".lock")
	if err != nil {
		return fmt.Errorf("logins: %w", err)
	}
	defer held.Close()
	l.lookLocked()
	all := slices.DeleteFunc(f(slices.Clone(l.all)), func(k keptLogin) bool { _, ok := l.principal(&k); return !ok })
	all = all[max(0, len(all)-maxKeptLogins):]
	if slices.EqualFunc(all, l.all, func(a, b keptLogin) bool { return bytes.Equal(a.Cookie, b.Cookie) }) {
		return nil
	}
	data, err := json.Marshal(loginsFile{Version: loginsVersion, Logins: all})
	if err == nil {
		err = secret.WriteFile(l.path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("logins: %w", err)
	}
	l.all, l.read = all, File(l.path).Version()
	return nil
}

// lookLocked reads the file if it has changed. One that cannot be used is put aside: its people log in again.
func (l *Logins) lookLocked() {
	now := File(l.path).Version()
	if l.read.there() && now.same(l.read) {
		return
	}
	l.all, l.read = nil, now
	var f loginsFile
	err := secret.ReadJSON(l.path, loginsVersion, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && slices.ContainsFunc(f.Logins, func(k keptLogin) bool {
		return len(k.Cookie) != sha256.Size || len(k.Token) != sha256.Size || k.Name != "" && checkName(k.Name) != nil
	}) {
		err = fmt.Errorf("%s has an entry that is not a login", l.path)
	}
	if err == nil {
		l.all = f.Logins
		return
	}
	aside := l.path + ".damaged"
	if moved := os.Rename(l.path, aside); moved != nil {
		l.onError(fmt.Errorf("logins: %w; it cannot be put aside: %w", err, moved))
		return
	}
	l.onError(fmt.Errorf("logins: %w; it is put aside as %s, and browsers have to log in again", err, aside))
}
