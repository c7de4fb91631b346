package devices

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"tether/host"
	"tether/host/access"
	"tether/pairing"
)

// revealTime is how long a machine has to reveal the values behind its commitment: it does so at once.
const revealTime = 30 * time.Second

// look is how often a wait looks whether the machine was let in.
const look = 200 * time.Millisecond

// pending is a pairing by code that is under way.
type pending struct {
	pair       pairing.Pair
	commitment []byte
	from       string
	expires    time.Time
	revealed   bool          // then it has a code
	newer      chan struct{} // closed when another request waits for it; nil before the first
}

// Pending is a pairing that waits to be approved.
type Pending struct {
	Code        string    `json:"code"`
	Name        string    `json:"name"` // the machine's name for itself
	Fingerprint string    `json:"fingerprint"`
	Remote      string    `json:"remote"` // where it asks from
	Expires     time.Time `json:"expires"`
	DeviceKey   []byte    `json:"device_key"`
	Commitment  []byte    `json:"commitment"` // tells this pairing from others
}

// begin keeps a machine's commitment.
func (d *Door) begin(from string, b pairing.Begin) (pairing.Begun, error) {
	if len(b.DeviceKey) != ed25519.PublicKeySize || len(b.Commitment) != pairing.NonceSize {
		return pairing.Begun{}, errBadRequest
	}
	if err := access.Check(b.Name, host.RoleMachine); err != nil {
		return pairing.Begun{}, &refusal{pairing.CodeBadRequest, err.Error()}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for id, p := range d.pending {
		if !now.Before(p.expires) {
			delete(d.pending, id)
		}
	}
	if len(d.pending) >= maxPending || !d.begins.Allow() {
		return pairing.Begun{}, errTooMany
	}
	id := d.node() + nodeEnds + rand.Text()
	p := &pending{pair: pairing.Pair{Host: d.public, Device: b.DeviceKey, Name: b.Name, HostNonce: random()}, commitment: b.Commitment,
		from: from, expires: now.Add(revealTime)}
	d.pending[id] = p
	return pairing.Begun{ID: id, HostKey: d.public, Nonce: p.pair.HostNonce}, nil
}

// reveal checks the revealed values against the commitment. Then there is a code, which is shown.
func (d *Door) reveal(r pairing.Reveal) (pairing.Revealed, error) {
	p, err := d.check(r)
	if err == nil {
		err = d.show()
	}
	if err != nil {
		return pairing.Revealed{}, err
	}
	d.audit(AuditPairing, p.from, p.pair.Name, "asks with the key "+pairing.Fingerprint(p.pair.Device))
	return pairing.Revealed{Signature: p.pair.SignHost(d.opts.Key)}, nil
}

func (d *Door) check(r pairing.Reveal) (*pending, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.openLocked(r.ID)
	if err != nil {
		return nil, err
	}
	if p.revealed {
		return nil, errBadRequest
	}
	p.pair.DeviceNonce = r.Nonce
	fits := len(r.Nonce) == pairing.NonceSize && subtle.ConstantTimeCompare(p.commitment, pairing.Commit(p.pair.Device, p.pair.Name, r.Nonce)) == 1
	if !fits || !p.pair.VerifyDevice(r.Signature) {
		delete(d.pending, r.ID) // there is no second try
		return nil, errWrongKey
	}
	p.revealed, p.expires = true, time.Now().Add(pairing.PairingTime)
	return p, nil
}

// openLocked is the pairing of that id.
func (d *Door) openLocked(id string) (*pending, error) {
	p := d.pending[id]
	if p == nil || !time.Now().Before(p.expires) {
		delete(d.pending, id)
		return nil, errExpired
	}
	return p, nil
}

// show writes the waiting pairings for those who may approve them.
func (d *Door) show() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.opts.Pending == nil {
		return nil
	}
	ours, known := d.waiting(), map[string]bool{}
	for _, p := range ours {
		known[string(p.Commitment)] = true
	}
	err := d.opts.Pending.Change(func(old []byte) ([]byte, error) {
		all := slices.Clone(ours)
		if d.opts.Nodes != nil {
			var f pendingFile
			_ = json.Unmarshal(old, &f) // what cannot be read shows nobody
			now := time.Now()
			for _, p := range f.Pending {
				if !d.shown[string(p.Commitment)] && !known[string(p.Commitment)] && now.Before(p.Expires) {
					all = append(all, p)
				}
			}
			slices.SortFunc(all, func(a, b Pending) int { return a.Expires.Compare(b.Expires) })
		}
		data, err := json.MarshalIndent(pendingFile{pendingVersion, all}, "", "  ")
		return append(data, '\n'), err
	})
	if err != nil {
		return fmt.Errorf("pairings that wait: %w", err)
	}
	d.shown = known
	return nil
}

func (d *Door) waiting() (all []Pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pending {
		if p.revealed {
			all = append(all, Pending{Code: p.pair.Code(), Name: p.pair.Name, Fingerprint: pairing.Fingerprint(p.pair.Device), Remote: p.from,
				Expires: p.expires.Round(0).UTC(), DeviceKey: p.pair.Device, Commitment: p.commitment})
		}
	}
	slices.SortFunc(all, func(a, b Pending) int { return a.Expires.Compare(b.Expires) })
	return all
}

// claim lets one wait for a pairing at a time: the former one ends, whose client may be gone without a word.
func (d *Door) claim(id string) (p *pending, newer <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err = d.openLocked(id)
	switch {
	case err != nil:
		return nil, nil, err
	case !p.revealed:
		return nil, nil, errBadRequest
	case p.newer != nil:
		close(p.newer)
	}
	p.newer = make(chan struct{})
	return p, p.newer, nil
}

// wait waits until the machine is approved, or the time is up.
func (d *Door) wait(done <-chan struct{}, id string) (pairing.Waited, error) {
	p, newer, err := d.claim(id)
	if err != nil {
		return pairing.Waited{}, err
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	late := time.NewTimer(pairing.WaitTime)
	defer late.Stop()
	for {
		if principal, ok := d.opts.Tokens.Approved(p.pair.Device, p.commitment); ok {
			d.forget(id)
			d.audit(AuditPaired, p.from, principal.Name, "by a code: "+pairing.Fingerprint(p.pair.Device))
			return pairing.Waited{Approved: true, Principal: principal.Name}, nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			return pairing.Waited{}, nil
		case <-newer:
			return pairing.Waited{}, nil
		case <-done:
			return pairing.Waited{}, nil
		}
	}
}

// forget ends a pairing that was approved. If the file cannot be written, it shows the pairing for some more minutes, without effect.
func (d *Door) forget(id string) {
	d.mu.Lock()
	delete(d.pending, id)
	d.mu.Unlock()
	_ = d.show()
}

// pendingFile is the content of the file.
type pendingFile struct {
	Version int       `json:"version"`
	Pending []Pending `json:"pending"`
}

const pendingVersion = 1

// ReadPending returns the pairings that are shown at a place and wait now, the oldest first.
func ReadPending(at access.Place) ([]Pending, error) {
	data, err := at.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f pendingFile
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != pendingVersion {
		err = fmt.Errorf("it has version %d, this program knows %d", f.Version, pendingVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("pairings that wait: %s cannot be read (%w); start the host again", at, err)
	}
	now := time.Now()
	return slices.DeleteFunc(f.Pending, func(p Pending) bool { return !now.Before(p.Expires) }), nil
}

var (
	// ErrNoPairing is returned by Approve if no pairing that waits has the code.
	ErrNoPairing = errors.New("no machine waits with this code")
	// ErrSameCode is returned by Approve if several have it. Nobody is let in then.
	ErrSameCode = errors.New("several machines wait with this code, which may be an attack; let them pair again")
)

// Approve lets the machine in that waits with that code, under a name; "" is the one by which it calls itself. Spaces and dashes in the
// code do not count.
func Approve(at access.Place, tokens *access.Tokens, code, name string) (access.Info, error) {
	one, err := Waiting(at, code)
	if err != nil {
		return access.Info{}, err
	}
	if name == "" {
		name = one.Name
	}
	return tokens.AddDevice(name, one.DeviceKey, one.Commitment)
}

// Waiting returns the machine that waits with a code. The errors are ErrNoPairing and ErrSameCode, or why the document cannot be read.
func Waiting(at access.Place, code string) (Pending, error) {
	code = strings.NewReplacer(" ", "", "-", "").Replace(code)
	all, err := ReadPending(at)
	if err != nil {
		return Pending{}, err
	}
	found := slices.DeleteFunc(all, func(p Pending) bool { return p.Code != code })
	switch {
	case len(found) == 0:
		return Pending{}, ErrNoPairing
	case len(found) > 1:
		return Pending{}, ErrSameCode
	}
	return found[0], nil
}
