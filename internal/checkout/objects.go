package checkout

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

const (
	maxPacks  = 256     // index files of packs that are searched
	maxCommit = 4 << 10 // bytes of a commit that are read: its tree, its parents and its time are at its beginning
)

// treeOf returns the hash of a commit's tree, nil if it is not found.
func (d *disk) treeOf(p *place, commit string) ([]byte, error) {
	text, err := d.commit(p, commit, new(packs))
	if err != nil {
		return nil, err
	}
	return treeIn(text, len(commit)), nil
}

// packs are the packs of a repository as they were listed once.
type packs struct {
	dir   string
	names []string // without .idx; the one that had the last object is the first
}

// commit returns the beginning of a commit's text. The text is nil if that is no commit.
func (d *disk) commit(p *place, commit string, known *packs) ([]byte, error) {
	objects, err := d.real(filepath.Join(p.common, "objects"))
	if err != nil {
		return nil, err
	}
	if dir, err := d.real(filepath.Join(objects, commit[:2])); err == nil {
		text, err := within(d, filepath.Join(dir, commit[2:]), func(f File, size int64) ([]byte, error) {
			return looseCommit(io.NewSectionReader(f, 0, size)), nil
		})
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	} else if err == errHangs {
		return nil, err
	}
	return d.packedCommit(objects, commit, known)
}

// list lists the packs, unless they are known.
func (known *packs) list(d *disk, objects string) (err error) {
	if known.names != nil {
		return nil
	}
	if known.dir, err = d.real(filepath.Join(objects, "pack")); err != nil {
		return err
	}
	names, err := ask(d, known.dir, func() ([]string, error) { return d.sys.Names(known.dir) })
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, ".idx"); ok {
			known.names = append(known.names, base)
		}
	}
	return err
}

func (d *disk) packedCommit(objects, commit string, known *packs) ([]byte, error) {
	hash, err := hex.DecodeString(commit)
	if err == nil {
		err = known.list(d, objects)
	}
	if err != nil {
		return nil, err
	}
	for i, base := range known.names {
		if i >= maxPacks {
			return nil, errTooLarge
		}
		base = filepath.Join(known.dir, base)
		at, err := within(d, base+".idx", func(f File, _ int64) (int64, error) { return offsetIn(f, hash) })
		if err != nil || at < 0 {
			if err == errHangs {
				return nil, err
			}
			continue
		}
		known.names[0], known.names[i] = known.names[i], known.names[0]
		return within(d, base+".pack", func(f File, size int64) ([]byte, error) {
			pack := pack{f, size, maxUnpacked}
			return pack.commit(at)
		})
	}
	return nil, fs.ErrNotExist
}

// offsetIn returns the place of an object by the index of a pack (version 2, see
// gitformat-pack), -1 if it is not there.
func offsetIn(f io.ReaderAt, hash []byte) (int64, error) {
	var head [8 + 256*4]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return -1, errNotGit
	}
	below := func(first int) int64 {
		if first < 0 {
			return 0
		}
		return int64(binary.BigEndian.Uint32(head[8+4*first:]))
	}
	low, high, all, size := below(int(hash[0])-1), below(int(hash[0])), below(255), int64(len(hash))
	for got := make([]byte, size); low < high; {
		mid := (low + high) / 2
		if _, err := f.ReadAt(got, int64(len(head))+mid*size); err != nil {
			return -1, err
		}
		switch order := bytes.Compare(got, hash); {
		case order < 0:
			low = mid + 1
		case order > 0:
			high = mid
		default:
			return offsetAt(f, int64(len(head))+all*(size+4), mid, all)
		}
	}
	return -1, nil
}

// offsetAt reads the n-th of all offsets, whose table begins at table.
func offsetAt(f io.ReaderAt, table, n, all int64) (int64, error) {
	var p [8]byte
	if _, err := f.ReadAt(p[:4], table+4*n); err != nil {
		return -1, err
	}
	short := binary.BigEndian.Uint32(p[:4])
	if short < 1<<31 {
		return int64(short), nil
	}
	if _, err := f.ReadAt(p[:], table+4*all+8*int64(short&(1<<31-1))); err != nil {
		return -1, err
	}
	long := int64(binary.BigEndian.Uint64(p[:]))
	if long < 0 {
		return -1, errNotGit
	}
	return long, nil
}

// looseCommit returns the beginning of the text of a commit in a file of its own, which
// begins with the type and the size; nil if it is none.
func looseCommit(packed io.Reader) []byte {
	unpacked, err := zlib.NewReader(packed)
	if err != nil {
		return nil
	}
	defer unpacked.Close()
	head := make([]byte, maxCommit)
	n, _ := io.ReadFull(unpacked, head) // a commit may be shorter
	kind, text, ok := bytes.Cut(head[:n], []byte{0})
	if !ok || !bytes.HasPrefix(kind, []byte("commit ")) {
		return nil
	}
	return text
}

// treeIn returns the hash of the tree of a commit with this text, nil if it is none.
func treeIn(text []byte, digits int) []byte {
	rest, ok := bytes.CutPrefix(text, []byte("tree "))
	if !ok || len(rest) < digits {
		return nil
	}
	tree, err := hex.DecodeString(string(rest[:digits]))
	if err != nil {
		return nil
	}
	return tree
}
