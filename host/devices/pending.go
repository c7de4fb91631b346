package devices

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/host/access"
	"tether/host/rights"
	"tether/pairing"
)

// revealTime bounds the time until a machine reveals the values of its commitment, which
// it does at once.
const revealTime = 30 * time.Second

// look is how often a wait checks whether the machine was approved.
const look = 200 * time.Millisecond

// pending is a pairing by code that is under way.
type pending struct {
	pair       pairing.Pair
	commitment []byte
	from       string
	expires    time.Time     // once it was revealed
	revealed   bool          // the machine has revealed its values, so that there is a code
	newer      chan struct{} // closed when another request waits for the pairing; nil before the first one
}

// Pending is a pairing that waits to be approved.
type Pending struct {
	Code        string    `json:"code"`
	Name        string    `json:"name"` // the machine's name for itself
	Fingerprint string    `json:"fingerprint"`
	Remote      string    `json:"remote"` // the address that it asks from
	Expires     time.Time `json:"expires"`
	DeviceKey   []byte    `json:"device_key"`
	Commitment  []byte    `json:"commitment"` // identifies this pairing
}

// begin begins a pairing: it stores the machine's commitment and makes the host's nonce.
func (d *Door) begin(from string, b pairing.Begin) (pairing.Begun, error) {
	if len(b.DeviceKey) != ed25519.PublicKeySize || len(b.Commitment) != pairing.NonceSize {
		return pairing.Begun{}, errBadRequest
	}
	if err := access.Check(b.Name, rights.RoleMachine); err != nil {
		return pairing.Begun{}, &refusal{pairing.CodeBadRequest, err.Error()}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending.Len() >= maxPending || !d.begins.Allow("") {
		return pairing.Begun{}, errTooMany
	}
	id := d.mark(d.node() + nodeEnds + rand.Text())
	p := &pending{pair: pairing.Pair{Host: d.public, Device: b.DeviceKey, Name: b.Name, HostNonce: random()}, commitment: b.Commitment, from: from}
	d.pending.Put(id, p, time.Now().Add(revealTime))
	return pairing.Begun{ID: id, HostKey: d.public, Nonce: p.pair.HostNonce}, nil
}

// reveal checks the revealed values against the commitment. If they fit, it writes the
// pairing with its code to Pending.
func (d *Door) reveal(r pairing.Reveal) (pairing.Revealed, error) {
	p, err := d.checked(r)
	if err == nil {
		err = d.show()
	}
	if err != nil {
		return pairing.Revealed{}, err
	}
	d.audit(AuditPairing, p.from, p.pair.Name, "asks with the key "+pairing.Fingerprint(p.pair.Device))
	return pairing.Revealed{Signature: p.pair.SignHost(d.opts.Key)}, nil
}

func (d *Door) checked(r pairing.Reveal) (*pending, error) {
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
		d.pending.Take(r.ID) // a machine has only one try
		return nil, errWrongKey
	}
	p.revealed, p.expires = true, time.Now().Add(pairing.PairingTime)
	d.pending.Put(r.ID, p, p.expires)
	return p, nil
}

// openLocked returns the pairing with that id, or errExpired.
func (d *Door) openLocked(id string) (*pending, error) {
	if p, ok := d.pending.Get(id); ok {
		return p, nil
	}
	return nil, errExpired
}

// show writes the waiting pairings of this door to Pending, and leaves those of other
// nodes there.
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
	err := d.doc.Change(func(f *pendingFile) error {
		all := slices.Clone(ours)
		if d.opts.Nodes != nil {
			now := time.Now()
			for _, p := range f.Pending {
				if !d.shown[string(p.Commitment)] && !known[string(p.Commitment)] && now.Before(p.Expires) {
					all = append(all, p)
				}
			}
			slices.SortFunc(all, func(a, b Pending) int { return a.Expires.Compare(b.Expires) })
		}
		f.Pending = all
		return nil
	})
	if err == nil {
		d.shown = known
	}
	return err
}

func (d *Door) waiting() (all []Pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pending.All() {
		if p.revealed {
			all = append(all, Pending{Code: p.pair.Code(), Name: p.pair.Name, Fingerprint: pairing.Fingerprint(p.pair.Device), Remote: p.from,
				Expires: p.expires.Round(0).UTC(), DeviceKey: p.pair.Device, Commitment: p.commitment})
		}
	}
	slices.SortFunc(all, func(a, b Pending) int { return a.Expires.Compare(b.Expires) })
	return all
}

// claim returns the pairing for a wait. Only one wait per pairing goes on: claim ends the
// former one, whose client may be gone.
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

// wait waits until the machine is approved. It gives up after WaitTime, when another
// request waits for the same pairing, and when done is closed.
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

// forget removes an approved pairing. If Pending cannot be written, the pairing stays
// there until it expires, without effect.
func (d *Door) forget(id string) {
	d.pending.Take(id)
	_ = d.show()
}

// pendingFile is the content of Pending.
type pendingFile struct {
	Version int       `json:"version"`
	Pending []Pending `json:"pending"`
}

const pendingVersion = 1

// pendingDoc returns the document at a place. lost is told why it cannot be used; nil
// makes that an error.
func pendingDoc(at access.Place, lost func(error)) *access.Doc[pendingFile] {
	return &access.Doc[pendingFile]{At: at, What: "the waiting pairings", Version: pendingVersion, Empty: pendingFile{Version: pendingVersion}, Indent: true, Lost: lost}
}

// ReadPending returns the pairings in Pending that wait now, the one that expires first
// at the beginning.
func ReadPending(at access.Place) ([]Pending, error) {
	f, err := pendingDoc(at, nil).Now()
	if err != nil {
		return nil, fmt.Errorf("%w; start the host again", err)
	}
	now := time.Now()
	return slices.DeleteFunc(f.Pending, func(p Pending) bool { return !now.Before(p.Expires) }), nil
}

var (
	// ErrNoPairing is returned by Approve if no pairing that waits has the code.
	ErrNoPairing = errors.New("no machine waits with this code")
	// ErrSameCode is returned by Approve if several pairings have the code. Then it
	// approves none.
	ErrSameCode = errors.New("several machines wait with this code, which may be an attack; let them pair again")
)

// Approve approves the machine that waits with that code, under a name; "" is the
// machine's name for itself. Spaces and dashes in the code are ignored.
func Approve(at access.Place, tokens *access.Tokens, code, name string) (access.Info, error) {
	one, err := Waiting(at, code)
	if err != nil {
		return access.Info{}, err
	}
	name = cmp.Or(name, one.Name)
	return tokens.AddDevice(name, one.DeviceKey, one.Commitment)
}

// Waiting returns the machine that waits with a code. Its errors are ErrNoPairing and
// ErrSameCode, or say why Pending cannot be read.
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
