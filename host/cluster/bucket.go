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
	"tether/internal/retry"
)

// watch starts to keep the copy of the bucket up to date, and returns when all of the
// bucket has arrived.
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

// took adds a value that the watch has reported to the copy.
func (n *Node) took(e jetstream.KeyValueEntry) {
	v := value{revision: e.Revision()}
	if e.Operation() == jetstream.KeyValuePut {
		v.data = e.Value()
	}
	n.keep(e.Key(), v)
}

// keep adds a value to the copy, unless that has a newer one.
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

// change replaces a value by the result of do. If another node has changed the value
// meanwhile, it calls do again.
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

// newest waits until the copy has a value that is newer than a revision. The copy may lag
// behind the bucket when that refuses a change.
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
		if !retry.Wait(ctx, 20*time.Millisecond) {
			return value{}, fmt.Errorf("the cluster's engine does not answer: %w", ctx.Err())
		}
	}
}

// Place returns a document that all nodes share, such as the tokens. Its Version changes
// when a change has arrived at this node.
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

// hashed returns a valid key of the bucket for any text.
func hashed(kind, what string) string {
	sum := sha256.Sum256([]byte(what))
	return kind + "." + hex.EncodeToString(sum[:16])
}
