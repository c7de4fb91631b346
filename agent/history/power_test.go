package history

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
)

// memory is an FS that loses power. A file is what was synced of it, and the writes since
// then; a directory likewise.
type memory struct {
	mu   sync.Mutex
	root *folder
	room int64 // bytes that still can be written; -1 is no bound
	sour error // what every change fails with
}

type folder struct {
	names   map[string]any // *folder or *content
	synced  map[string]any
	pending []func(map[string]any) // since then
}

type content struct {
	data    []byte
	synced  []byte
	pending []int // ends of the writes since then
}

func newMemory() *memory { return &memory{root: newFolder(), room: -1} }

func newFolder() *folder { return &folder{names: map[string]any{}, synced: map[string]any{}} }

func (d *folder) change(f func(map[string]any)) {
	f(d.names)
	d.pending = append(d.pending, f)
}

// lose returns what is there after a loss of power: of what was not synced a subset, or
// what came first.
func (m *memory) lose(r *rand.Rand) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{root: m.root.lose(r), room: -1}
}

// survivors chooses among n changes.
func survivors(r *rand.Rand, n int) []bool {
	keep := make([]bool, n)
	prefix := r.IntN(n + 1)
	subset := r.IntN(2) == 0
	for i := range keep {
		keep[i] = subset && r.IntN(2) == 0 || !subset && i < prefix
	}
	return keep
}

func (d *folder) lose(r *rand.Rand) *folder {
	left := maps.Clone(d.synced)
	for i, keep := range survivors(r, len(d.pending)) {
		if keep {
			d.pending[i](left)
		}
	}
	after := newFolder()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		switch f := left[name].(type) {
		case *folder:
			after.names[name] = f.lose(r)
		case *content:
			after.names[name] = f.lose(r)
		}
	}
	after.synced = maps.Clone(after.names)
	return after
}

func (c *content) lose(r *rand.Rand) *content {
	data := slices.Clone(c.synced)
	from := len(c.synced)
	for i, keep := range survivors(r, len(c.pending)) {
		to := c.pending[i]
		if keep {
			data = append(data, make([]byte, from-len(data))...) // what was lost before reads as zeros
			n := to - from
			if r.IntN(4) == 0 {
				n = r.IntN(n + 1) // torn
			}
			data = append(data, c.data[from:from+n]...)
		}
		from = to
	}
	return &content{data: data, synced: slices.Clone(data)}
}

func (m *memory) find(name string) (dir *folder, base string, err error) {
	dir = m.root
	parts := strings.Split(path.Clean(name), "/")
	for _, part := range parts[:len(parts)-1] {
		next, ok := dir.names[part].(*folder)
		if !ok {
			return nil, "", &fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
		dir = next
	}
	return dir, parts[len(parts)-1], nil
}

func (m *memory) Append(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.find(name)
	if err != nil {
		return nil, err
	}
	if c, ok := dir.names[base].(*content); ok {
		return &opened{m, c}, m.sour
	}
	if dir.names[base] != nil || m.sour != nil {
		return nil, errors.Join(errors.New("no file can be made"), m.sour)
	}
	c := &content{}
	dir.change(func(names map[string]any) { names[base] = c })
	return &opened{m, c}, nil
}

func (m *memory) Open(name string) (Source, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.find(name)
	if err != nil {
		return nil, err
	}
	switch c := dir.names[base].(type) {
	case *content:
		return &opened{m, c}, nil
	case *folder:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (m *memory) MakeDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "." {
		return nil
	}
	dir, base, err := m.find(name)
	if err != nil || dir.names[base] != nil {
		return err
	}
	if m.sour != nil {
		return m.sour
	}
	made := newFolder()
	dir.change(func(names map[string]any) { names[base] = made })
	return nil
}

func (m *memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.find(from)
	if err != nil || m.sour != nil {
		return errors.Join(err, m.sour)
	}
	f := dir.names[base]
	if f == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	target := path.Base(to)
	dir.change(func(names map[string]any) {
		names[target] = f
		delete(names, base)
	})
	return nil
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.find(name)
	if err != nil || dir.names[base] == nil {
		return nil
	}
	if m.sour != nil {
		return m.sour
	}
	if f, ok := dir.names[base].(*folder); ok && len(f.names) > 0 {
		return errors.New("the directory is not empty")
	}
	dir.change(func(names map[string]any) { delete(names, base) })
	return nil
}

func (m *memory) List(name string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir := m.root
	if name != "." {
		sub, ok := m.root.names[name].(*folder)
		if !ok {
			return nil, &fs.PathError{Op: "list", Path: name, Err: fs.ErrNotExist}
		}
		dir = sub
	}
	var all []Entry
	for _, name := range slices.Sorted(maps.Keys(dir.names)) {
		e := Entry{Name: name}
		if c, ok := dir.names[name].(*content); ok {
			e.Size = int64(len(c.data))
		} else {
			e.Dir = true
		}
		all = append(all, e)
	}
	return all, nil
}

func (m *memory) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir := m.root
	if name != "." {
		sub, ok := m.root.names[name].(*folder)
		if !ok {
			return &fs.PathError{Op: "sync", Path: name, Err: fs.ErrNotExist}
		}
		dir = sub
	}
	dir.synced, dir.pending = maps.Clone(dir.names), nil
	return m.sour
}

type opened struct {
	m *memory
	c *content
}

func (o *opened) Write(p []byte) (int, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.m.sour != nil {
		return 0, o.m.sour
	}
	n := len(p)
	if o.m.room >= 0 {
		n = int(min(int64(n), o.m.room))
		o.m.room -= int64(n)
	}
	o.c.data = append(o.c.data, p[:n]...)
	if n > 0 {
		o.c.pending = append(o.c.pending, len(o.c.data))
	}
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func (o *opened) Sync() error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.m.sour != nil {
		return o.m.sour
	}
	o.c.synced, o.c.pending = slices.Clip(o.c.data), nil // it only grows
	return nil
}

func (o *opened) ReadAt(p []byte, off int64) (int, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if off >= int64(len(o.c.data)) {
		return 0, io.EOF
	}
	n := copy(p, o.c.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (o *opened) Size() (int64, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	return int64(len(o.c.data)), nil
}

func (o *opened) Close() error { return nil }
