package checkout

import (
	"bufio"
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
	maxPacks = 256 // index files of packs that are searched
	maxZip   = 4 << 10
)

// treeOf returns the hash of a commit's tree, nil if it is not found. It does not resolve
// differences between objects in packs; git stores new commits whole.
func (d *disk) treeOf(p *place, commit string) ([]byte, error) {
	objects, err := d.real(filepath.Join(p.common, "objects"))
	if err != nil {
		return nil, err
	}
	if dir, err := d.real(filepath.Join(objects, commit[:2])); err == nil {
		tree, err := within(d, filepath.Join(dir, commit[2:]), func(f File, size int64) ([]byte, error) {
			return treeIn(io.NewSectionReader(f, 0, size), true, len(commit)), nil
		})
		if !errors.Is(err, fs.ErrNotExist) {
			return tree, err
		}
	} else if err == errHangs {
		return nil, err
	}
	return d.packedTree(objects, commit)
}

func (d *disk) packedTree(objects, commit string) ([]byte, error) {
	dir, err := d.real(filepath.Join(objects, "pack"))
	if err != nil {
		return nil, err
	}
	names, err := ask(d, dir, func() ([]string, error) { return d.sys.Names(dir) })
	if err != nil {
		return nil, err
	}
	hash, err := hex.DecodeString(commit)
	if err != nil {
		return nil, err
	}
	searched := 0
	for _, name := range names {
		base, ok := strings.CutSuffix(name, ".idx")
		if !ok {
			continue
		}
		if searched++; searched > maxPacks {
			return nil, errTooLarge
		}
		at, err := within(d, filepath.Join(dir, name), func(f File, _ int64) (int64, error) { return offsetIn(f, hash) })
		if err != nil || at < 0 {
			if err == errHangs {
				return nil, err
			}
			continue
		}
		return within(d, filepath.Join(dir, base+".pack"), func(f File, size int64) ([]byte, error) {
			const commitType = 1
			r := bufio.NewReader(io.NewSectionReader(f, at, size-at))
			first, err := r.ReadByte()
			for next := first; err == nil && next&0x80 != 0; { // the object's size
				next, err = r.ReadByte()
			}
			if err != nil || first>>4&7 != commitType {
				return nil, errNotGit
			}
			return treeIn(r, false, len(commit)), nil
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

// treeIn returns the hash of the tree at the beginning of a compressed commit, nil if it
// is none. A loose object begins with its type and size.
func treeIn(packed io.Reader, loose bool, digits int) []byte {
	unpacked, err := zlib.NewReader(io.LimitReader(packed, maxZip))
	if err != nil {
		return nil
	}
	defer unpacked.Close()
	var text [128]byte
	n, _ := io.ReadFull(unpacked, text[:]) // a commit may be shorter
	head := text[:n]
	if loose {
		kind, rest, ok := bytes.Cut(head, []byte{0})
		if !ok || !bytes.HasPrefix(kind, []byte("commit ")) {
			return nil
		}
		head = rest
	}
	rest, ok := bytes.CutPrefix(head, []byte("tree "))
	if !ok || len(rest) < digits {
		return nil
	}
	tree, err := hex.DecodeString(string(rest[:digits]))
	if err != nil {
		return nil
	}
	return tree
}
