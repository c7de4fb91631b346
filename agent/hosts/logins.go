package hosts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tether/platform/dirs"
	"tether/platform/secret"
)

const loginVersion = 1

// Login is a person's login at a host, by `tether login`. It needs no pairing, and the
// daemon does not use it.
type Login struct {
	Version int       `json:"version"`
	URL     string    `json:"url"`
	Token   string    `json:"token"`
	Person  string    `json:"person"` // the host's name for the person
	Until   time.Time `json:"until"`
}

// loginPath is the file of a login: each host has its own, so that two commands never
// change the same one.
func loginPath(d dirs.Dirs, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(d.State, "logins", fmt.Sprintf("%x.json", sum[:12]))
}

// SaveLogin keeps a login in a file of its own, which this user alone can read; it takes
// the place of an older one.
func SaveLogin(d dirs.Dirs, l Login) error {
	l.Version = loginVersion
	path := loginPath(d, l.URL)
	if err := secret.Dir(d.State); err != nil {
		return err
	}
	if err := secret.Dir(filepath.Dir(path)); err != nil {
		return err
	}
	return secret.WriteJSON(path, l)
}

// LoginAt returns the login at the host with that URL, in its canonical form; ok is false
// if there is none that is still valid.
func LoginAt(d dirs.Dirs, url string) (l Login, ok bool, err error) {
	err = secret.ReadJSON(loginPath(d, url), loginVersion, &l)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	return l, err == nil && l.URL == url && time.Now().Before(l.Until), err
}

// DropLogin forgets the login at a host. There need not be one.
func DropLogin(d dirs.Dirs, url string) error {
	if err := os.Remove(loginPath(d, url)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
