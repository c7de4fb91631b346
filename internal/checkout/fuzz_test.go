package checkout_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/checkout"
)

// number encodes a number as reftables do.
func number(n int) []byte {
	p := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		p = append([]byte{byte(n&0x7f) | 0x80}, p...)
	}
	return p
}

// record is a ref for a reftable: a commit, a target, or neither for a deleted one.
type record struct{ name, commit, to string }

// reftable encodes blocks of records as gitformat-reftable says.
func reftable(version byte, size int, blocks ...[]record) []byte {
	table := append([]byte("REFT"), version, byte(size>>16), byte(size>>8), byte(size))
	table = append(table, make([]byte, 16)...)
	if version == 2 {
		table = append(table, "s256"...)
	}
	for n, records := range blocks {
		start := len(table)
		if n == 0 {
			start = 0
		}
		at := len(table)
		table = append(table, 'r', 0, 0, 0)
		last := ""
		for _, r := range records {
			shared := 0
			for shared < min(len(last), len(r.name)) && last[shared] == r.name[shared] {
				shared++
			}
			kind, value := 0, []byte(nil)
			switch {
			case r.commit != "":
				kind = 1
				value, _ = hex.DecodeString(r.commit)
			case r.to != "":
				kind = 3
				value = append(number(len(r.to)), r.to...)
			}
			table = append(append(append(table, number(shared)...), number((len(r.name)-shared)<<3|kind)...), r.name[shared:]...)
			table = append(append(table, number(7)...), value...)
			last = r.name
		}
		table = append(table, 0, 0, byte(at+4-start), 0, 1)
		length := len(table) - start
		table[at+1], table[at+2], table[at+3] = byte(length>>16), byte(length>>8), byte(length)
		if size > 0 && n < len(blocks)-1 {
			table = append(table, make([]byte, size-len(table)%size)...)
		}
	}
	return append(table, make([]byte, 68)...)
}

// Refs in reftables are found, the newest table first.
func TestReftable(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("ab", 20)
	for _, size := range []int{0, 256} {
		r := temp(t)
		r.write(".git/HEAD", "ref: refs/heads/.invalid\n")
		r.write(".git/worktrees/two/HEAD", "ref: refs/heads/.invalid\n")
		r.write(".git/worktrees/two/commondir", "../..\n")
		r.write(".git/reftable/tables.list", "one.ref\ntwo.ref\n")
		r.write(".git/worktrees/two/reftable/tables.list", "one.ref\n")
		r.write(".git/reftable/one.ref", string(reftable(1, size, []record{{name: "HEAD", to: "refs/heads/main"}, {name: "refs/heads/gone", commit: hash}},
			[]record{{name: "refs/heads/main", commit: other}, {name: "refs/heads/main-2", commit: hash}})))
		r.write(".git/reftable/two.ref", string(reftable(1, size, []record{{name: "refs/heads/gone"}, {name: "refs/heads/main", commit: hash}})))
		r.write(".git/worktrees/two/reftable/one.ref", string(reftable(1, size, []record{{name: "HEAD", to: "refs/heads/main-2"}})))
		r.write("../two/.git", "gitdir: "+filepath.Join(r.dir, ".git/worktrees/two"))
		var f checkout.Finder
		for dir, want := range map[string]string{".": "main@0123456", "../two": "main-2@0123456"} {
			if c, _ := f.Find(filepath.Join(r.dir, dir)); c.Label() != want || c.Repository != r.dir {
				t.Errorf("blocks of %d, %s: %+v, want %s", size, dir, c, want)
			}
		}
		r.write(".git/worktrees/two/reftable/one.ref", string(reftable(1, size, []record{{name: "HEAD", to: "refs/heads/gone"}})))
		var again checkout.Finder
		if c, _ := again.Find(filepath.Join(r.dir, "../two")); c.Label() != "gone" {
			t.Errorf("a deleted ref: %+v", c)
		}
	}
	long := strings.Repeat("cd", 32)
	commit, _, found, err := checkout.SearchTable(reftable(2, 0, []record{{name: "HEAD", commit: long}}), "HEAD")
	if commit != long || !found || err != nil {
		t.Errorf("SHA-256: %s, %t, %v", commit, found, err)
	}
}

func FuzzReftable(f *testing.F) {
	f.Add(reftable(1, 256, []record{{name: "HEAD", to: "refs/heads/main"}}, []record{{name: "refs/heads/main", commit: hash}}), "refs/heads/main")
	f.Add(reftable(2, 0, []record{{name: "HEAD", commit: strings.Repeat("cd", 32)}}), "HEAD")
	f.Fuzz(func(t *testing.T, table []byte, ref string) {
		commit, to, found, err := checkout.SearchTable(table, ref)
		if !found && commit+to != "" || err != nil && found || commit != "" && len(commit) != 40 && len(commit) != 64 {
			t.Errorf("%q %q %t %v", commit, to, found, err)
		}
	})
}

func FuzzRef(f *testing.F) {
	f.Add("ref: refs/heads/main\n")
	f.Add(hash + "\n")
	f.Add("gitdir: ../x\n")
	f.Fuzz(func(t *testing.T, text string) {
		commit, to, ok := checkout.ParseRef(text)
		if ok && (commit == "") == (to == "") || commit != "" && ok && len(commit) != 40 && len(commit) != 64 {
			t.Errorf("%q: %q %q %t", text, commit, to, ok)
		}
		if checkout.ValidRef(to) && (!filepath.IsLocal(filepath.FromSlash(to)) || strings.ContainsAny(to, "\x00\n\x1b")) {
			t.Errorf("%q leads outside", to)
		}
		if dir := checkout.PathIn(text, filepath.FromSlash("/a")); dir != "" && !filepath.IsAbs(dir) && filepath.Separator == '/' {
			t.Errorf("%q is relative", dir)
		}
	})
}

func FuzzPacked(f *testing.F) {
	f.Add("# pack-refs with: peeled fully-peeled sorted\n"+hash+" refs/heads/main\n^"+hash+"\n", "refs/heads/main")
	f.Add(strings.Repeat("x", 9000)+" refs/heads/main\n", "refs/heads/main")
	f.Fuzz(func(t *testing.T, text, ref string) {
		commit, err := checkout.Packed(strings.NewReader(text), ref)
		if commit != "" && (err != nil || !strings.Contains(text, commit+" "+ref)) {
			t.Errorf("%q, %v", commit, err)
		}
	})
}

func FuzzIndex(f *testing.F) {
	file := append(make([]byte, 40), bytes.Repeat([]byte{7}, 20)...)
	file = append(file, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for version := range byte(4) {
		index := append([]byte("DIRC"), 0, 0, 0, version+1, 0, 0, 0, 1)
		f.Add(append(append(index, file...), make([]byte, 20)...), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, long bool) {
		size := 20
		if long {
			size = 32
		}
		names, tree, ok := checkout.IndexNames(data, size)
		if len(tree) != size || len(names) > len(data) || ok && len(data) < 12 {
			t.Errorf("%d names, a tree of %d bytes, %t", len(names), len(tree), ok)
		}
	})
}

func FuzzPack(f *testing.F) {
	index := append([]byte("\xfftOc\x00\x00\x00\x02"), make([]byte, 4*256)...)
	for i := 7; i < 256; i++ {
		binary.BigEndian.PutUint32(index[8+4*i:], 1)
	}
	f.Add(append(append(index, bytes.Repeat([]byte{7}, 20)...), 0, 0, 0, 0, 0, 0, 1, 0))
	f.Add([]byte("\x78\x9c\x4b\xce\xcf\xcd\xcd\x2c\x51"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if at, err := checkout.OffsetIn(bytes.NewReader(data), bytes.Repeat([]byte{7}, 20)); at < 0 != (err != nil || at == -1) {
			t.Errorf("%d, %v", at, err)
		}
		packed, _ := checkout.PackedCommit(bytes.NewReader(data), int64(len(data)), int64(len(data)/2))
		for _, text := range [][]byte{checkout.LooseCommit(bytes.NewReader(data)), packed, data} {
			if tree := checkout.TreeIn(text, 40); tree != nil && len(tree) != 20 {
				t.Errorf("%x", tree)
			}
		}
		if text, _ := checkout.Apply([]byte("0123456789"), data); len(text) > 64<<10 {
			t.Errorf("an object of %d bytes", len(text))
		}
	})
}
