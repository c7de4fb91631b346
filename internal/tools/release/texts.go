package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one shipped file: its path here, and the parts of its path there.
type file struct {
	kind kind
	name string // "tether", "tether-run.1", "tether.bash"
	from string // absolute path here
}

// kind is the kind of a file, which decides its place in each kind of package.
type kind string

const (
	programFile kind = "program"
	manualFile  kind = "man"
	textFile    kind = "text" // licences, README
	docFile     kind = "doc"  // a page of docs/
	bashFile    kind = "bash"
	zshFile     kind = "zsh"
	fishFile    kind = "fish"
	powerFile   kind = "powershell"
)

// shells are the completions that cobra knows, by its names, with the file name under
// which each shell looks for the program's.
var shells = []struct {
	kind kind
	form string
}{
	{bashFile, "%s.bash"}, {zshFile, "_%s"}, {fishFile, "%s.fish"}, {powerFile, "%s.ps1"},
}

func (r *release) textDir() string { return filepath.Join(r.work, "texts") }

// texts writes the files that are the same for all targets. The programs write their own
// manual and completions, so a build for this machine is used.
func (r *release) texts(ctx context.Context) error {
	if err := os.MkdirAll(r.textDir(), 0o755); err != nil {
		return err
	}
	native, err := r.native(ctx)
	if err != nil {
		return err
	}
	for _, name := range programs {
		self, err := exec.LookPath(filepath.Join(native, name))
		if err != nil {
			return err
		}
		if err := r.manual(ctx, self, name); err != nil {
			return err
		}
		for _, s := range shells {
			script, err := exec.CommandContext(ctx, self, "completion", string(s.kind)).Output()
			if err != nil {
				return fmt.Errorf("%s completion %s: %w", name, s.kind, err)
			}
			if err := os.WriteFile(filepath.Join(r.textDir(), fmt.Sprintf(s.form, name)), script, 0o644); err != nil {
				return err
			}
		}
	}
	if err := r.pages(); err != nil {
		return err
	}
	return r.licences(ctx, filepath.Join(r.textDir(), licencesName))
}

// manual makes a program write its pages into the directory of all pages: each name
// belongs to one program.
func (r *release) manual(ctx context.Context, self, name string) error {
	own, all := filepath.Join(r.work, "man", name), filepath.Join(r.textDir(), "man")
	cmd := exec.CommandContext(ctx, self, "manual", own)
	cmd.Env = r.dated()
	if err := runQuiet(cmd); err != nil {
		return err
	}
	if err := os.MkdirAll(all, 0o755); err != nil {
		return err
	}
	pages, err := os.ReadDir(own)
	if err != nil {
		return err
	}
	for _, page := range pages {
		to := filepath.Join(all, page.Name())
		if _, err := os.Lstat(to); err == nil {
			return fmt.Errorf("%s: another program has a page %s; see manual.Book.Names", name, page.Name())
		}
		if err := os.Rename(filepath.Join(own, page.Name()), to); err != nil {
			return err
		}
	}
	return nil
}

// pages copies the pages for people: the README, and those pages of docs/ to which it,
// help and errors refer.
func (r *release) pages() error {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		return err
	}
	docs = append(docs, "docs/tether.svg") // the README's picture
	if err := os.MkdirAll(filepath.Join(r.textDir(), "docs"), 0o755); err != nil {
		return err
	}
	for _, page := range append(docs, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		if m := told.FindSubmatch(text); m != nil {
			text = bytes.ReplaceAll(text, m[1], []byte(r.names.base))
		}
		if err := os.WriteFile(filepath.Join(r.textDir(), page), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// native is the directory of the programs that run on this machine: those of a target if
// one matches, else new builds.
func (r *release) native(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	words := append(strings.Fields(string(out)), "", "")
	host := target{words[0], words[1]}
	dir := filepath.Dir(r.program(host, product))
	if slices.Contains(r.targets, host) {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, r.goBuild(ctx, dir, "GOOS="+host.os, "GOARCH="+host.arch)
}

// files are those of one target, in a fixed order.
func (r *release) files(t target) ([]file, error) {
	var all []file
	for _, name := range programs {
		all = append(all, file{programFile, t.exe(name), r.program(t, name)})
	}
	for _, name := range []string{licencesName, "README.md"} {
		all = append(all, file{textFile, name, filepath.Join(r.textDir(), name)})
	}
	for _, s := range shells {
		for _, name := range programs {
			base := fmt.Sprintf(s.form, name)
			all = append(all, file{s.kind, base, filepath.Join(r.textDir(), base)})
		}
	}
	for _, several := range []struct {
		kind kind
		dir  string
	}{{docFile, "docs"}, {manualFile, "man"}} {
		dir := filepath.Join(r.textDir(), several.dir)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, file{several.kind, e.Name(), filepath.Join(dir, e.Name())})
		}
	}
	return all, nil
}

// mode is a file's permissions everywhere.
func (f file) mode() fs.FileMode {
	if f.kind == programFile {
		return 0o755
	}
	return 0o644
}

// portable is the place in archives and below the directory of a program of Windows.
func (f file) portable() string {
	switch f.kind {
	case programFile, textFile:
		return f.name
	case docFile:
		return "docs/" + f.name
	case manualFile:
		return "man/man1/" + f.name
	}
	return "completions/" + f.name
}

// compressed writes a compressed copy of a page, as distributions have them, that depends
// on nothing but the page.
func compressed(from, to string) error {
	page, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(page); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

// redate gives a file the time of the commit.
func redate(path string, epoch time.Time) error { return os.Chtimes(path, epoch, epoch) }
