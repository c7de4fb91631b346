package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tether/host/access"
)

// watch keeps the copy of the bucket up to date, and returns when all of it has arrived.
func (n *Node) watch(ctx context.Context) error {
	w, err := n.kv.WatchAll(n.ctx)
	if err != nil {
		return refused("see the log of the servers", "the bucket of the cluster %s cannot be read: %v", n.opts.Name, err)
	}
	whole := make(chan struct{})
	n.spawn(func() {
		defer w.Stop()
		for {
			select {
			case e, ok := <-w.Updates():
				switch {
				case !ok:
					return
				case e == nil:
					close(whole)
				default:
					n.took(e)
				}
			case <-n.ctx.Done():
				return
			}
		}
	})
	select {
	case <-whole:
		return nil
	case <-ctx.Done():
		return refused("see the log of the servers", "the bucket of the cluster %s cannot be read in time", n.opts.Name)
	}
}

// took takes over a value of the bucket.
func (n *Node) took(e jetstream.KeyValueEntry) {
	v := value{revision: e.Revision()}
	if e.Operation() == jetstream.KeyValuePut {
		v.data = e.Value()
	}
	n.keep(e.Key(), v)
}

// keep notes a value, unless a newer one is known.
func (n *Node) keep(key string, v value) {
	n.mu.Lock()
	newer := v.revision > n.kept[key].revision
	if newer {
		n.kept[key] = v
	}
	n.mu.Unlock()
	if newer {
		n.leased(key, v.data)
	}
}

func (n *Node) known(key string) value {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept[key]
}

// change replaces a value by the result of do. do is called again when another node has changed the value meanwhile.
func (n *Node) change(ctx context.Context, key string, do func(old []byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	old := n.known(key)
	for {
		data, err := do(old.data)
		if err != nil {
			return err
		}
		if most := int(n.nc.MaxPayload()) - 1<<10; len(data) > most {
			return fmt.Errorf("%s would have %d bytes, and the NATS servers take %d: raise max_payload there", key, len(data), most)
		}
		var revision uint64
		if old.revision == 0 {
			revision, err = n.kv.Create(ctx, key, data)
		} else {
			revision, err = n.kv.Update(ctx, key, data, old.revision)
		}
		if err == nil {
			n.keep(key, value{data, revision})
			return nil
		}
		if !conflicts(err) {
			return fmt.Errorf("the cluster's engine does not answer: %w", err)
		}
		if old, err = n.newest(ctx, key, old.revision); err != nil {
			return err
		}
	}
}

// newest waits for a value that is newer than a revision: the copy here may lag behind the bucket, which refused a change.
func (n *Node) newest(ctx context.Context, key string, than uint64) (value, error) {
	for {
		if v := n.known(key); v.revision > than {
			return v, nil
		}
		e, err := n.kv.Get(ctx, key)
		if err == nil && e.Revision() > than {
			n.took(e)
			continue
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return value{}, fmt.Errorf("the cluster's engine does not answer: %w", ctx.Err())
		}
	}
}

// Place is a document that all nodes share, such as the tokens. Its Version changes when the change has come here.
func (n *Node) Place(name string) access.Place { return place{n, "doc." + name} }

type place struct {
	n   *Node
	key string
}

// String implements access.Place.
func (p place) String() string { return fmt.Sprintf("%s of the cluster %s", p.key, p.n.opts.Name) }

// Read implements access.Place.
func (p place) Read() ([]byte, error) {
	if v := p.n.known(p.key); v.data != nil {
		return v.data, nil
	}
	return nil, fs.ErrNotExist
}

// Version implements access.Place.
func (p place) Version() access.Version {
	v := p.n.known(p.key)
	if v.data == nil {
		return access.Version{}
	}
	return access.Revision(v.revision)
}

// Change implements access.Place.
func (p place) Change(do func([]byte) ([]byte, error)) error { return p.n.change(p.n.ctx, p.key, do) }

// hashed is a key for any text.
func hashed(kind, what string) string {
	sum := sha256.Sum256([]byte(what))
	return kind + "." + hex.EncodeToString(sum[:16])
}
