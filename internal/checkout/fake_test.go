package checkout_test

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"tether/internal/checkout"
)

// fake is a system in memory. Its paths have slashes. What is below /net is another file
// system.
type fake struct {
	mu    sync.Mutex
	files map[string]string        // texts; directories follow from their names
	links map[string]string        // targets
	dirs  map[string]bool          // made of the others when it is first needed
	pipes map[string]bool          // an open of these would wait; git's own files are none
	hangs map[string]chan struct{} // by volume: its answers come when the channel is closed
	asked map[string]int           // questions by volume
	slow  time.Duration            // each answer takes that long
}

func (f *fake) Volume(name string) string {
	if name == "/net" || strings.HasPrefix(name, "/net/") {
		return "/net"
	}
	return "/"
}

// enter waits while the volume hangs.
func (f *fake) enter(name string) {
	volume := f.Volume(name)
	f.mu.Lock()
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[volume]++
	hangs := f.hangs[volume]
	f.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	if f.slow > 0 {
		<-time.After(f.slow) // of the fake clock
	}
}

func (f *fake) questions(volume string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[volume]
}

func (f *fake) Lstat(name string) (fs.FileInfo, error) {
	f.enter(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.links[name]; ok {
		return info{name: name, mode: fs.ModeSymlink}, nil
	}
	if f.pipes[name] {
		return info{name: name, mode: fs.ModeNamedPipe}, nil
	}
	if text, ok := f.files[name]; ok {
		return info{name: name, size: len(text)}, nil
	}
	if f.dirs == nil {
		f.dirs = map[string]bool{}
		for _, all := range []map[string]string{f.files, f.links} {
			for one := range all {
				for ; one != "/"; one = path.Dir(one) {
					f.dirs[path.Dir(one)] = true
				}
			}
		}
	}
	if f.dirs[name] {
		return info{name: name, mode: fs.ModeDir}, nil
	}
	return nil, fs.ErrNotExist
}

func (f *fake) Readlink(name string) (string, error) {
	f.enter(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.links[name], nil
}

func (f *fake) Names(name string) (names []string, err error) {
	f.enter(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.files {
		if path.Dir(one) == name {
			names = append(names, path.Base(one))
		}
	}
	return names, nil
}

func (f *fake) Open(name string) (checkout.File, error) {
	f.enter(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return file{bytes.NewReader([]byte(text)), info{name: name, size: len(text)}}, nil
}

type file struct {
	*bytes.Reader
	info info
}

func (f file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f file) Close() error               { return nil }

type info struct {
	name string
	size int
	mode fs.FileMode
}

func (i info) Name() string       { return path.Base(i.name) }
func (i info) Size() int64        { return int64(i.size) }
func (i info) Mode() fs.FileMode  { return i.mode | 0o600 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
