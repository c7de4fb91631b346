package access

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/platform/secret"
)

const sharesVersion = 1

// Shares keeps shared links in a file: hashes of their secrets and of guests' tokens. It implements host.Shares, and is safe for concurrent use.
type Shares struct {
	path    string      // set once
	onError func(error) // set once

	mu sync.Mutex // held while the file is read or written
}

// keptShare is a record of the file.
type keptShare struct {
	ID      string    `json:"id"`
	Channel string    `json:"terminal"`
	Secret  []byte    `json:"secret_sha256"`
	Machine string    `json:"machine"`
	Owner   string    `json:"owner,omitempty"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until"`
	Once    bool      `json:"once,omitempty"`
	Guests  [][]byte  `json:"guests_sha256,omitempty"`
}

// sharesFile is the content of the file.
type sharesFile struct {
	Version int         `json:"version"`
	Shares  []keptShare `json:"shares"`
}

// OpenShares keeps shares in a file, which may not be there yet. A file that cannot be used is renamed, and onError is told.
func OpenShares(path string, onError func(error)) *Shares {
	return &Shares{path: path, onError: onError}
}

// Kept implements host.Shares.
func (s *Shares) Kept() (all []host.Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f sharesFile
	err := secret.ReadJSON(s.path, sharesVersion, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	now := time.Now()
	for _, k := range f.Shares {
		one := host.Share{ID: k.ID, Channel: k.Channel, Machine: k.Machine, Owner: k.Owner, Name: k.Name, Created: k.Created, Until: k.Until, Once: k.Once}
		if len(k.Secret) != sha256.Size || ahp.CheckShareID(k.ID) != nil {
			err = errors.Join(err, fmt.Errorf("%s has an entry that is not a share", s.path))
			break
		}
		one.Secret = [sha256.Size]byte(k.Secret)
		for _, g := range k.Guests {
			if len(g) == sha256.Size {
				one.Guests = append(one.Guests, [sha256.Size]byte(g))
			}
		}
		if now.Before(k.Until) && k.Until.Before(now.Add(ahp.MaxShareTime+time.Hour)) {
			all = append(all, one)
		}
	}
	if err == nil {
		return all
	}
	aside := s.path + ".damaged"
	if moved := os.Rename(s.path, aside); moved != nil {
		s.onError(fmt.Errorf("shared links: %w; the file cannot be put aside: %w", err, moved))
		return nil
	}
	s.onError(fmt.Errorf("shared links: %w; the file is put aside as %s, and links must be made again", err, aside))
	return nil
}

// Keep implements host.Shares.
func (s *Shares) Keep(all []host.Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := sharesFile{Version: sharesVersion, Shares: []keptShare{}}
	for i := range all {
		one := &all[i]
		k := keptShare{ID: one.ID, Channel: one.Channel, Secret: one.Secret[:], Machine: one.Machine, Owner: one.Owner, Name: one.Name, Created: one.Created.UTC(), Until: one.Until.UTC(), Once: one.Once}
		for j := range one.Guests {
			k.Guests = append(k.Guests, one.Guests[j][:])
		}
		f.Shares = append(f.Shares, k)
	}
	data, err := json.Marshal(f)
	if err == nil {
		err = secret.Dir(filepath.Dir(s.path))
	}
	if err == nil {
		err = secret.WriteFile(s.path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("shared links: %w", err)
	}
	return nil
}
