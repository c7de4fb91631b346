package checkout

import (
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// Refs in the reftable format, see gitformat-reftable. There are few tables and they are
// small, because git joins them; larger ones are not read.
const (
	reftableHead = "refs/heads/.invalid" // what HEAD says in such a repository
	maxTables    = 64
	maxTable     = 4 << 20 // bytes
)

// tables looks a ref up in the reftables: HEAD and the like in those of the work tree.
func (d *disk) tables(p *place, ref string) (reference, error) {
	dir := filepath.Join(p.common, "reftable")
	if !strings.HasPrefix(ref, "refs/") {
		dir = filepath.Join(p.git, "reftable")
	}
	dir, err := d.real(dir)
	if err != nil {
		return reference{}, err
	}
	if info, err := d.lstat(filepath.Join(dir, "tables.list")); err == nil {
		p.saw(info)
	}
	list, err := d.read(filepath.Join(dir, "tables.list"), maxSmall)
	if err != nil {
		return reference{}, err
	}
	names := strings.Fields(string(list))
	if len(names) > maxTables {
		return reference{}, errTooLarge
	}
	for i := len(names) - 1; i >= 0; i-- { // the newest is the last
		if strings.ContainsAny(names[i], `/\:`) || names[i] == ".." {
			return reference{}, errNotGit
		}
		table, err := d.read(filepath.Join(dir, names[i]), maxTable)
		if err != nil {
			return reference{}, err
		}
		if r, found, err := searchTable(table, ref); found || err != nil {
			return r, err
		}
	}
	return reference{}, nil
}

// searchTable finds a ref in one table. A ref that the table deletes is found, and empty.
func searchTable(table []byte, ref string) (r reference, found bool, err error) {
	if len(table) < 28 || string(table[:4]) != "REFT" {
		return r, false, errNotGit
	}
	header, hash := 24, 20
	switch table[4] {
	case 1:
	case 2:
		header = 28
		if string(table[24:28]) == "s256" {
			hash = 32
		}
	default:
		return r, false, errNotGit
	}
	size := uint24(table[5:]) // of a block; 0: they are not aligned
	for start, first := 0, header; start+first+4 <= len(table) && table[start+first] == 'r'; first = 0 {
		end := start + uint24(table[start+first+1:]) // counted from the start of the block, with the file's header
		if end > len(table) || end < start+first+6 {
			return r, false, errNotGit
		}
		b := block{cursor{data: table[start+first+4 : end]}, hash}
		if r, found = b.search(ref); found || b.bad {
			break
		}
		if start = end; size > 0 {
			start = (end + size - 1) / size * size
		}
		if b.bad {
			return r, false, errNotGit
		}
	}
	return r, found, nil
}

func uint24(p []byte) int { return int(p[0])<<16 | int(p[1])<<8 | int(p[2]) }

// block reads the records of a block of refs.
type block struct {
	cursor     // of the records, the offsets of restarts, and their number
	hash   int // bytes of an object's name
}

// search finds a ref. Records are sorted and share prefixes with the one before.
func (b *block) search(ref string) (r reference, found bool) {
	restarts := 3*int(binary.BigEndian.Uint16(b.data[len(b.data)-2:])) + 2
	if restarts > len(b.data) {
		b.bad = true
		return r, false
	}
	b.data = b.data[:len(b.data)-restarts]
	var name []byte
	for len(b.data) > 0 && !b.bad {
		prefix, suffix := b.number(), b.number()
		kind := suffix & 7
		if prefix < 0 || prefix > len(name) {
			b.bad = true
			break
		}
		name = append(name[:prefix], b.take(suffix>>3)...)
		b.number() // the update's index
		is := reference{}
		switch kind {
		case 0: // deleted
		case 1:
			is.commit = hex.EncodeToString(b.take(b.hash))
		case 2: // and the object of the tag
			is.commit = hex.EncodeToString(b.take(b.hash))
			b.take(b.hash)
		case 3:
			is.to = string(b.take(b.number()))
		default:
			b.bad = true
		}
		if string(name) == ref && !b.bad {
			return is, true
		}
	}
	return r, false
}
