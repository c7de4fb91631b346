package checkout

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"hash"
)

// newHash returns the hash with that many bytes.
func newHash(size int) hash.Hash {
	if size == sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// hashOf returns the name of an object.
func hashOf(kind string, data []byte, size int) []byte {
	sum := newHash(size)
	fmt.Fprintf(sum, "%s %d\x00", kind, len(data))
	sum.Write(data)
	return sum.Sum(nil)
}

// trees computes the hash of the tree that a commit of an index would have. Entries come
// in the order of the index, so each directory is complete when the next one begins.
type trees struct {
	size int
	open []openTree // from the root to the directory of the last entry
}

type openTree struct {
	name []byte // of the directory, with a slash at its end; empty for the root
	data []byte
}

// add adds an entry with that name from the root.
func (t *trees) add(mode uint32, name, hash []byte) {
	if t.open == nil {
		t.open = []openTree{{}}
	}
	name = bytes.TrimSuffix(name, []byte("/")) // of a directory in a sparse index
	for !bytes.HasPrefix(name, t.open[len(t.open)-1].name) {
		t.close()
	}
	for {
		last := &t.open[len(t.open)-1]
		rest := name[len(last.name):]
		at := bytes.IndexByte(rest, '/')
		if at < 0 {
			last.data = fmt.Appendf(last.data, "%o %s\x00%s", mode, rest, hash)
			return
		}
		t.open = append(t.open, openTree{name: bytes.Clone(name[:len(last.name)+at+1])})
	}
}

// close adds the last open directory to the one above it.
func (t *trees) close() {
	last, above := t.open[len(t.open)-1], &t.open[len(t.open)-2]
	t.open = t.open[:len(t.open)-1]
	above.data = fmt.Appendf(above.data, "40000 %s\x00%s", last.name[len(above.name):len(last.name)-1], hashOf("tree", last.data, t.size))
}

// root returns the hash of the whole tree.
func (t *trees) root() []byte {
	if t.open == nil {
		return hashOf("tree", nil, t.size)
	}
	for len(t.open) > 1 {
		t.close()
	}
	return hashOf("tree", t.open[0].data, t.size)
}
