package access

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"tether/ahp"
	"tether/host"
)

const sharesVersion = 1

// Shares keeps shares in a file, with only hashes of their secrets and of guests' tokens. It implements host.SharedShares, and is safe for
// concurrent use.
type Shares struct {
	at      Place       // set once
	onError func(error) // set once

	mu   sync.Mutex // held while the document is read or written
	read Version
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

// OpenShares keeps shares in a document, which may be missing. If it cannot be used, onError is called, and a file is renamed.
func OpenShares(at Place, onError func(error)) *Shares { return &Shares{at: at, onError: onError} }

// Kept implements host.Shares.
func (s *Shares) Kept() []host.Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = s.at.Version()
	data, err := s.at.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.damaged(err)
	}
	return s.parse(data)
}

// Moved implements host.SharedShares.
func (s *Shares) Moved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.at.Version().same(s.read)
}

// parse decodes the document, nil if there is none, and leaves out expired shares.
func (s *Shares) parse(data []byte) (all []host.Share) {
	if data == nil {
		return nil
	}
	var f sharesFile
	if err := decode(s.at, data, sharesVersion, &f); err != nil {
		return s.damaged(err)
	}
	now := time.Now()
	for _, k := range f.Shares {
		one := host.Share{ID: k.ID, Channel: k.Channel, Machine: k.Machine, Owner: k.Owner, Name: k.Name, Created: k.Created, Until: k.Until, Once: k.Once}
		if len(k.Secret) != sha256.Size || ahp.CheckShareID(k.ID) != nil {
			return s.damaged(fmt.Errorf("%s has an entry that is not a share", s.at))
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
	return all
}

// damaged renames a file that cannot be used; a cluster's document stays and is replaced by the next change. It reports err to onError.
func (s *Shares) damaged(err error) []host.Share {
	_, err = putAside(s.at, err, ", and links must be made again")
	s.onError(fmt.Errorf("shared links: %w", err))
	return nil
}

// Keep implements host.Shares.
func (s *Shares) Keep(all []host.Share) error {
	return s.Change(func([]host.Share) ([]host.Share, error) { return all, nil })
}

// Change implements host.SharedShares.
func (s *Shares) Change(do func(old []host.Share) ([]host.Share, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var said error
	err := s.at.Change(func(old []byte) ([]byte, error) {
		all, err := do(s.parse(old))
		if said = err; err != nil {
			return nil, err
		}
		return encodeShares(all)
	})
	if err != nil && said == nil {
		return fmt.Errorf("shared links: %w", err)
	}
	return err
}

func encodeShares(all []host.Share) ([]byte, error) {
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
	return append(data, '\n'), err
}
