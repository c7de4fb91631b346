package ports

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tether/internal/checkout"
	"tether/platform/socket"
)

// Auto asks for a free port.
const Auto = "auto"

// First and Last bound the chosen ports.
const (
	First = 3000
	Last  = 9999
)

// keptFor is how long a program that was started has until it listens.
const keptFor = 30 * time.Second

// refused are the ports in between to which browsers send no requests: "bad ports" of
// https://fetch.spec.whatwg.org/#port-blocking
var refused = []int{3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697}

// Check returns an error unless the text is Auto or the number of a port.
func Check(text string) error {
	n, err := strconv.Atoi(text)
	if text == Auto || err == nil && n >= 1 && n <= 65535 && text == strconv.Itoa(n) {
		return nil
	}
	return fmt.Errorf("port %.20q must be auto or 1 to 65535", text)
}

// TakenError says that a port is not free.
type TakenError struct {
	Port  int
	Given bool   // it was just given to another terminal
	By    string // who has it, if known to the caller; in words
}

func (e *TakenError) Error() string {
	switch {
	case e.By != "":
		return fmt.Sprintf("port %d is used by %s", e.Port, e.By)
	case e.Given:
		return fmt.Sprintf("port %d was just given to another terminal", e.Port)
	}
	return fmt.Sprintf("port %d is in use", e.Port)
}

// Options configures a Keeper.
type Options struct {
	// Keep is the file with the ports that were given last; "" keeps none.
	Keep string
	// Report is called with the error that prevents reading or writing the file, and with
	// "" when there is none; nil means nobody is told.
	Report func(trouble string)
	// Checkouts finds the work tree of a directory; nil means a Finder of its own.
	Checkouts *checkout.Finder
	// Free reports whether a port is free; nil means socket.Free.
	Free func(port int) bool
}

// Keeper gives ports and keeps them until the programs that got them listen. It is safe
// for concurrent use.
type Keeper struct {
	opts Options

	writing sync.Mutex // held while the file is written, so that changes are written in order

	mu    sync.Mutex
	kept  map[int]*Kept
	given []given // newest last
}

// New returns a Keeper, and reads the file. An unreadable file counts as empty.
func New(o Options) *Keeper {
	if o.Free == nil {
		o.Free = socket.Free
	}
	if o.Checkouts == nil {
		o.Checkouts = new(checkout.Finder)
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	k := &Keeper{opts: o, kept: map[int]*Kept{}}
	k.load()
	return k
}

// Kept is a port that nobody else gets. A nil Kept has none.
type Kept struct {
	Port int
	of   *Keeper

	// Guarded by Keeper.mu.
	until time.Time   // zero before Begin
	ended func() bool // see Begin
}

// Keep gives a port to the program with this name in the directory: the number that asked
// is, or for Auto one that is free everywhere, see socket.Free. That is the port that the
// same name had last in the same git work tree, if it is free. The caller must call Begin
// or Release. Keep may take a second for a file system that hangs. Errors: a *TakenError,
// Check's, and one that no port is free.
func (k *Keeper) Keep(asked, dir, name string) (*Kept, error) {
	if err := Check(asked); err != nil {
		return nil, err
	}
	if asked != Auto {
		port, _ := strconv.Atoi(asked) // Check has read it
		return k.try(port)
	}
	if c, ok := k.opts.Checkouts.Find(dir); ok && c.Worktree != "" {
		dir = c.Worktree
	}
	hash := sha256.Sum256([]byte(dir + "\x00" + name))
	key := hex.EncodeToString(hash[:8])
	if port := k.last(key); port != 0 {
		if kept, err := k.try(port); err == nil {
			return kept, nil
		}
	}
	const all = Last - First + 1
	from := int(binary.BigEndian.Uint64(hash[8:]) % all)
	for i := range all {
		port := First + (from+i)%all
		if slices.Contains(refused, port) {
			continue
		}
		if kept, err := k.try(port); err == nil {
			k.remember(key, port)
			return kept, nil
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free", First, Last)
}

// try keeps a port if it is free. It asks the system without the lock.
func (k *Keeper) try(port int) (*Kept, error) {
	k.mu.Lock()
	was := k.kept[port]
	k.mu.Unlock()
	over := was == nil || was.over()
	kept := &Kept{Port: port, of: k}
	k.mu.Lock()
	if over = over && k.kept[port] == was; over {
		k.kept[port] = kept
	}
	k.mu.Unlock()
	if !over {
		return nil, &TakenError{Port: port, Given: true}
	}
	if !k.opts.Free(port) {
		kept.Release()
		return nil, &TakenError{Port: port}
	}
	return kept, nil
}

// Begin says that the program starts now: the port is kept for 30 s, or until ended, if
// not nil, returns true. It may be called again.
func (p *Kept) Begin(ended func() bool) {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.until, p.ended = time.Now().Add(keptFor), ended
}

// over reports whether somebody else may get the port, if it is free.
func (p *Kept) over() bool {
	p.of.mu.Lock()
	until, ended := p.until, p.ended
	p.of.mu.Unlock()
	return !until.IsZero() && (!time.Now().Before(until) || ended != nil && ended())
}

// Release says that the program does not start. It may be called again.
func (p *Kept) Release() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.of.kept[p.Port] == p {
		delete(p.of.kept, p.Port)
	}
}

// Fill returns texts with the port in place of each {port}.
func (p *Kept) Fill(texts ...string) []string {
	out := slices.Clone(texts)
	if p != nil {
		for i, text := range out {
			out[i] = strings.ReplaceAll(text, "{port}", strconv.Itoa(p.Port))
		}
	}
	return out
}
