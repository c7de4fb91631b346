package checkout

import "io"

// Decoders, for fuzzing.
var (
	ParseRef = func(text string) (commit, to string, ok bool) { r, ok := parseRef(text); return r.commit, r.to, ok }
	PathIn   = pathIn
	ValidRef = validRef
	Packed   = func(text io.Reader, ref string) (string, error) {
		r, err := searchPacked(text, ref)
		return r.commit, err
	}
	SearchTable = func(table []byte, ref string) (commit, to string, found bool, err error) {
		r, found, err := searchTable(table, ref)
		return r.commit, r.to, found, err
	}
	TreeIn      = treeIn
	LooseCommit = looseCommit
	OffsetIn    = offsetIn
	Apply       = apply
)

// IndexNames decodes an index, and returns the names in it and the tree of their commit.
func IndexNames(data []byte, hash int) (names []string, tree []byte, ok bool) {
	x, t := openIndex(data, hash), trees{size: hash}
	for {
		e, more := x.next()
		if !more {
			break
		}
		if safe(e.name) {
			t.add(e.mode, e.name, e.hash)
		}
		names = append(names, string(e.name))
	}
	return names, t.root(), x.understood() && !x.bad
}

// PackedCommit reads the commit at an offset of a pack.
func PackedCommit(file io.ReaderAt, size, at int64) ([]byte, error) {
	p := pack{file, size, maxUnpacked}
	return p.commit(at)
}
