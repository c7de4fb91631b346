package cluster

import (
	"context"
	"io/fs"
	"sync"

	"tether/host/access"
)

// Documents reads the documents of a cluster for a command that is not a node. The
// returned function returns the document with a name. Their contents are those at the
// time of this call; a change connects again and is applied to the present contents.
func Documents(ctx context.Context, o Options) (func(name string) access.Place, error) {
	o.HostKey = nil
	n, err := Join(ctx, o)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	docs := map[string]*document{}
	for key, v := range n.kept {
		docs[key] = &document{opts: o, key: key, v: v}
	}
	return func(name string) access.Place {
		key := place{n, "doc." + name}.key
		if docs[key] == nil {
			docs[key] = &document{opts: o, key: key}
		}
		return docs[key]
	}, nil
}

// document is one document of a cluster, for a command.
type document struct {
	opts Options
	key  string

	mu sync.Mutex
	v  value
}

// String implements access.Place.
func (d *document) String() string { return place{&Node{opts: d.opts}, d.key}.String() }

// Read implements access.Place.
func (d *document) Read() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.v.data == nil {
		return nil, fs.ErrNotExist
	}
	return d.v.data, nil
}

// Version implements access.Place.
func (d *document) Version() access.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.v.data == nil {
		return access.Version{}
	}
	return access.Revision(d.v.revision)
}

// Change implements access.Place.
func (d *document) Change(do func([]byte) ([]byte, error)) error {
	n, err := Join(context.Background(), d.opts)
	if err != nil {
		return err
	}
	defer n.Close()
	err = n.change(n.ctx, d.key, do)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.v = n.known(d.key)
	return err
}
