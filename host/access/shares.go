package access

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"time"

	"tether/ahp"
	"tether/host/share"
)

const sharesVersion = 1

// Shares keeps shares in a file, with only hashes of their secrets and of guests' tokens.
// It implements share.Store, and is safe for concurrent use.
type Shares struct{ doc Doc[sharesFile] }

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
	Port    int       `json:"port,omitempty"`
	Once    bool      `json:"once,omitempty"`
	Guests  [][]byte  `json:"guests_sha256,omitempty"`
}

// sharesFile is the content of the file.
type sharesFile struct {
	Version int         `json:"version"`
	Shares  []keptShare `json:"shares"`
	// Ports are those of lent ports. They are apart, so that a node of a release that
	// does not know them does not show guests the terminal.
	Ports []keptShare `json:"port_shares,omitempty"`
}

// OpenShares keeps shares in a document, which may be missing. If it cannot be used,
// onError is called, and a file is renamed.
func OpenShares(at Place, onError func(error)) *Shares {
	return &Shares{Doc[sharesFile]{At: at, What: "shared links", Version: sharesVersion, Empty: sharesFile{Version: sharesVersion}, Check: (*sharesFile).check,
		Lost: onError, Effect: ", and links must be made again"}}
}

// Kept implements share.Store.
func (s *Shares) Kept() []share.Link {
	f, err := s.doc.Now()
	if err != nil {
		s.doc.Lost(err)
		return nil
	}
	return f.shares()
}

// Moved implements share.Store.
func (s *Shares) Moved() bool { return s.doc.Moved() }

func (f *sharesFile) check() error {
	for _, k := range slices.Concat(f.Shares, f.Ports) {
		if len(k.Secret) != sha256.Size || ahp.CheckShareID(k.ID) != nil {
			return errors.New("it has an entry that is not a share")
		}
	}
	return nil
}

// shares returns those that have not expired.
func (f *sharesFile) shares() (all []share.Link) {
	now := time.Now()
	for _, k := range slices.Concat(f.Shares, f.Ports) {
		one := share.Link{ID: k.ID, Channel: k.Channel, Machine: k.Machine, Owner: k.Owner, Name: k.Name, Created: k.Created, Until: k.Until, Port: k.Port, Once: k.Once}
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

// Change implements share.Store.
func (s *Shares) Change(do func(all []share.Link) []share.Link) error {
	return s.doc.Change(func(f *sharesFile) error {
		now := sharesFile{Version: f.Version}
		now.Shares, now.Ports = keptShares(do(f.shares()))
		if reflect.DeepEqual(now, *f) {
			return errSame
		}
		*f = now
		return nil
	})
}

func keptShares(all []share.Link) (kept, ports []keptShare) {
	kept = []keptShare{}
	for i := range all {
		one := &all[i]
		k := keptShare{ID: one.ID, Channel: one.Channel, Secret: one.Secret[:], Machine: one.Machine, Owner: one.Owner, Name: one.Name, Created: one.Created.UTC(), Until: one.Until.UTC(), Port: one.Port, Once: one.Once}
		for j := range one.Guests {
			k.Guests = append(k.Guests, one.Guests[j][:])
		}
		if k.Port != 0 {
			ports = append(ports, k)
		} else {
			kept = append(kept, k)
		}
	}
	return kept, ports
}
