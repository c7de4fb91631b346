package checkout

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Types of files in Entry.Mode, as git stores them.
const (
	modeType   = 0o170000
	modeFile   = 0o100000
	modeLink   = 0o120000
	modeModule = 0o160000 // a submodule; the hash is its commit
	modeDir    = 0o040000 // of a sparse index
)

// entry is a file in git's index, see gitformat-index.
type entry struct {
	changed, modified time.Time // ctime and mtime when git last looked; their nanoseconds may be 0 for unknown
	mode, size        uint32
	hash              []byte // of the blob
	name              []byte // with slashes, from the root; valid until the next entry
	conflict          bool   // it is one side of a conflict
	skip              bool   // git does not look at the file: assume-unchanged or skip-worktree
	intent            bool   // git add -N
}

// index reads an index of version 2, 3 or 4. After an error bad is set.
type index struct {
	cursor
	version, hash int
	left          int // entries
	name          []byte
}

// openIndex reads the header of an index with hashes of that many bytes.
func openIndex(data []byte, hash int) *index {
	x := &index{cursor: cursor{data: data}, hash: hash}
	if string(x.take(4)) != "DIRC" {
		x.bad = true
		return x
	}
	x.version, x.left = int(x.uint32()), int(x.uint32())
	if x.version < 2 || x.version > 4 || x.left < 0 || x.left > len(data)/(42+hash)+1 {
		x.bad = true
	}
	return x
}

// next returns the next entry; ok is false at the end.
func (x *index) next() (e entry, ok bool) {
	if x.bad || x.left == 0 {
		return e, false
	}
	x.left--
	before := len(x.data)
	p := x.take(40)
	e.hash = x.take(x.hash)
	f := x.take(2)
	if x.bad {
		return e, false
	}
	word := func(n int) int64 { return int64(binary.BigEndian.Uint32(p[4*n:])) }
	e.changed, e.modified = time.Unix(word(0), word(1)%1e9), time.Unix(word(2), word(3)%1e9)
	e.mode, e.size = uint32(word(6)), uint32(word(9))
	flags := binary.BigEndian.Uint16(f)
	e.conflict, e.skip = flags&0x3000 != 0, flags&0x8000 != 0
	if flags&0x4000 != 0 && x.version > 2 {
		if more := x.take(2); more != nil {
			e.skip, e.intent = e.skip || more[0]&0x40 != 0, more[0]&0x20 != 0
		}
	}
	if x.version == 4 {
		drop := x.number()
		if drop < 0 || drop > len(x.name) {
			x.bad = true
			return e, false
		}
		x.name = append(x.name[:len(x.name)-drop], x.until(0)...)
	} else {
		x.name = append(x.name[:0], x.until(0)...)
		if odd := (before - len(x.data)) % 8; odd > 0 { // at least one zero byte, then up to a multiple of 8
			x.take(8 - odd)
		}
	}
	e.name = x.name
	return e, !x.bad
}

// understood reports, after the last entry, whether the index needs no extension that
// this package does not know, such as that of a split index.
func (x *index) understood() bool {
	for len(x.data) > x.hash && !x.bad {
		name := x.take(4)
		x.take(int(x.uint32()))
		if !x.bad && (name[0] < 'A' || name[0] > 'Z') && string(name) != "sdir" { // that only says that there are entries of directories
			return false
		}
	}
	return !x.bad
}

// safe reports whether a name leads to a file of the work tree, as git demands.
func safe(name []byte) bool {
	for part := range bytes.SplitSeq(name, []byte("/")) {
		switch {
		case len(part) == 0, string(part) == ".", string(part) == "..", bytes.EqualFold(part, []byte(".git")), bytes.ContainsAny(part, "\\\x00"):
			return false
		}
	}
	return true
}
