package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"tether/internal/clip"
)

// Besides the words of the command, an approval covers the values of the variables that
// the request sets and the contents of the files that it runs. Both are examined when the
// question is asked and again right before the start.

// Script is a file that a request runs, as it was when the question was put.
type Script struct {
	Path string `json:"path"`
	Sum  string `json:"sha256,omitempty"` // of its contents; "" if it could not be read
	Size int64  `json:"size"`             // bytes
}

const (
	maxScripts = 32       // of one request
	maxHashed  = 64 << 20 // bytes of a file that are hashed; a longer file's size and time of last change count, too
	maxSetting = 8 << 10  // bytes of a variable's value that are shown
)

// bind returns the request in the form that a question and a grant keep: with a sum over
// its settings and scripts, and with only those values of variables that the person is
// shown.
func (e *Engine) bind(r Request) (Request, []Script) {
	h := sha256.New()
	for _, v := range r.Env {
		fmt.Fprintf(h, "%d:%s", len(v), v)
	}
	scripts := scriptsOf(r)
	for _, s := range scripts {
		fmt.Fprintf(h, "%q %s %d", s.Path, s.Sum, s.Size)
	}
	r = copied(r)
	for i, v := range r.Env {
		r.Env[i] = e.shown(v)
	}
	h.Sum(r.bound[:0])
	return r, scripts
}

// shown returns a variable as the person sees it: with its value if that decides which
// code runs, otherwise with secrets masked.
func (e *Engine) shown(variable string) string {
	name, value, _ := strings.Cut(variable, "=")
	switch {
	case loads(name) || opens(name):
	case e.mask == nil:
		value = hidden
	default:
		value = e.mask(value, []string{variable})
	}
	return name + "=" + clip.Marked(value, maxSetting)
}

// EnvNames returns the names of variables of the form NAME=value.
func EnvNames(env []string) []string {
	var names []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}

// scriptsOf examines the files that the request runs. It looks for each in r.Cwd and in
// all directories to which the line changes.
func scriptsOf(r Request) []Script {
	read := Read(r)
	dirs := []string{r.Cwd}
	for _, w := range read.Moves {
		if w.Fixed {
			dirs = append(dirs, absolute(w.Text, dirs[len(dirs)-1]))
		}
	}
	var all []Script
	seen := map[string]bool{}
	for _, w := range read.Scripts {
		for _, dir := range dirs {
			path := absolute(w.Text, dir)
			if seen[path] || len(all) == maxScripts {
				continue
			}
			seen[path] = true
			if s, there := look(path); there {
				all = append(all, s)
			}
		}
	}
	return all
}

// look returns the size and hash of a file; there is false unless it is a regular file.
func look(path string) (s Script, there bool) {
	s.Path = path
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // reading a pipe would take from it
		return s, false
	}
	s.Size = info.Size()
	f, err := os.Open(path)
	if err != nil {
		return s, true
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxHashed))
	if err != nil {
		return s, true
	}
	if n == maxHashed {
		fmt.Fprint(h, info.ModTime().UnixNano())
	}
	s.Sum = hex.EncodeToString(h.Sum(nil))
	return s, true
}
