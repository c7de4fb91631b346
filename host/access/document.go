package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// Doc is a document of JSON that others may change, too. It is read again when it was
// changed. What is at the Place counts: a Doc keeps nothing that is not there, and each
// change begins with what is there. It is safe for concurrent use.
type Doc[T any] struct {
	// Set before use.
	At      Place
	What    string         // its contents, which errors begin with
	Version int            // of its form
	Empty   T              // a missing one, with Version
	Indent  bool           // it is written for people
	Stays   bool           // once it was there, it must not be missing
	Check   func(*T) error // says what is wrong with the contents; nil: nothing can be
	// Lost is told why a document cannot be used, which is then empty: a file is renamed,
	// and a document of a cluster is replaced by the next change. Effect is added to the
	// reason. Without Lost, what was read before stays in force.
	Lost   func(error)
	Effect string

	changing sync.Mutex // held while it is changed: not each Place has a lock

	mu   sync.Mutex
	read Version
	now  *T // nil before it was read
}

// Now returns the contents, which the caller must not change. It returns the same pointer
// until they have changed. If they cannot be read, it returns those before, nil if there
// are none, with the error.
func (d *Doc[T]) Now() (*T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	version := d.At.Version()
	if d.now != nil && version.same(d.read) {
		return d.now, nil
	}
	data, err := d.At.Read()
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case gone && d.Stays && d.read.there():
		return d.now, fmt.Errorf("%s: %s is gone; restore it, or start the host again without %[1]s", d.What, d.At)
	case gone:
		data, err = nil, nil
	}
	f, err := d.parse(data, err)
	if err == nil {
		d.now, d.read = f, version
	}
	return d.now, err
}

// Moved reports whether the contents may have changed since Now last returned them. It is
// cheap.
func (d *Doc[T]) Moved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now == nil || !d.At.Version().same(d.read)
}

// errSame makes a change end without a write, because nothing changes.
var errSame = errors.New("nothing changes")

// Change lets do alter the contents while nobody else does, and returns when they are
// stored. do may be called again with what another node has made of them. Change returns
// its error.
func (d *Doc[T]) Change(do func(*T) error) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	var why error // not to store
	err := d.At.Change(func(old []byte) ([]byte, error) {
		f, err := d.parse(old, nil)
		if err == nil {
			err = do(f)
		}
		if why = err; err != nil {
			return nil, err
		}
		return d.encode(f)
	})
	switch {
	case errors.Is(why, errSame):
		return nil
	case why == nil && err != nil:
		return fmt.Errorf("%s: %w", d.What, err)
	}
	return err
}

// Set replaces the contents, whatever they were, and returns when they are stored.
func (d *Doc[T]) Set(f T) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.At.Change(func([]byte) ([]byte, error) { return d.encode(&f) }); err != nil {
		return fmt.Errorf("%s: %w", d.What, err)
	}
	return nil
}

func (d *Doc[T]) encode(f *T) (data []byte, err error) {
	if d.Check != nil {
		if err := d.Check(f); err != nil {
			return nil, err
		}
	}
	if data, err = json.Marshal(f); d.Indent {
		data, err = json.MarshalIndent(f, "", "  ")
	}
	return append(data, '\n'), err
}

// parse decodes the document, nil if there is none, unless it could not be read.
func (d *Doc[T]) parse(data []byte, err error) (*T, error) {
	f := d.Empty
	if data == nil && err == nil {
		return &f, nil
	}
	if err == nil {
		err = decode(d.At, data, d.Version, &f)
	}
	if err == nil && d.Check != nil {
		if err = d.Check(&f); err != nil {
			err = fmt.Errorf("%s: %w", d.At, err)
			if d.Lost == nil {
				err = fmt.Errorf("%w; repair or remove it", err)
			}
		}
	}
	if err == nil {
		return &f, nil
	}
	moved := false
	if d.Lost != nil {
		moved, err = putAside(d.At, err, d.Effect)
	}
	err = fmt.Errorf("%s: %w", d.What, err)
	if d.Lost == nil || !moved && onDisk(d.At) {
		return nil, err
	}
	d.Lost(err)
	empty := d.Empty
	return &empty, nil
}
