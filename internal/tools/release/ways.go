package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// The other ways in: install scripts, manifests of package managers, and packages of npm.
// Each file is a template of the file of the same name in the results; those in
// directories are the files of a package of npm.
//
//go:embed ways
var ways embed.FS

// address is where the files of releases are: the newest list of checksums and the
// scripts, and the archives of every version.
type address string

// Nothing in an address, a name or a scope has a meaning in a shell, in JSON, Ruby or
// Nix.
var (
	addressForm = regexp.MustCompile(`^(https://[A-Za-z0-9.-]+|http://(127\.0\.0\.1|localhost))(:\d+)?(/[A-Za-z0-9._~-]+)*$`)
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,100}$`)
	scopeForm   = regexp.MustCompile(`^(@[a-z0-9][a-z0-9-]{0,100})?$`)
	// told is the line of the README that has the address, the only place where it is
	// written.
	told = regexp.MustCompile(`curl -fsSL (\S+)/install\.sh \| sh`)
)

// names are what the flags say about addresses and names.
type names struct {
	base       address
	npm, scope string
	given      bool // the address is no placeholder
}

func parseNames(base, npm, scope string) (names, error) {
	n := names{address(strings.TrimSuffix(base, "/")), npm, scope, base != ""}
	if !n.given {
		readme, err := os.ReadFile("README.md")
		if err != nil {
			return n, err
		}
		m := told.FindSubmatch(readme)
		if m == nil {
			return n, errors.New("README.md has no line with the install script; give -base-url")
		}
		n.base = address(m[1])
	}
	switch {
	case !addressForm.MatchString(string(n.base)):
		return n, fmt.Errorf("-base-url: %q is no address of a directory with https (or http at 127.0.0.1)", n.base)
	case !nameForm.MatchString(npm):
		return n, fmt.Errorf("-npm-name: %q is no name of a package", npm)
	case !scopeForm.MatchString(scope):
		return n, fmt.Errorf("-npm-scope: %q is no scope; want @word or nothing", scope)
	}
	return n, nil
}

// full is a package's name for npm.
func (n names) full(suffix string) string {
	if n.scope == "" {
		return n.npm + suffix
	}
	return n.scope + "/" + n.npm + suffix
}

// npmTarget is a target as Node names it.
type npmTarget struct {
	target
	OS, CPU, Name string
}

func (r *release) npmTargets() (all []npmTarget) {
	for _, t := range r.targets {
		n := npmTarget{target: t, OS: t.os, CPU: t.arch}
		if t.os == "windows" {
			n.OS = "win32"
		}
		if t.arch == "amd64" {
			n.CPU = "x64"
		}
		n.Name = r.names.full("-" + n.OS + "-" + n.CPU)
		all = append(all, n)
	}
	return all
}

// fields are what templates see.
type fields struct {
	Version                  string
	NPMVersion               string // without the commit, which npm drops
	PkgVersion               string // of pacman
	Base                     address
	Summary, Signers, Signer string
	NPM, Alias               string // the package of npm, and its name if that is not the program's
	Targets                  []npmTarget
	Target                   npmTarget
	MSI                      map[string]string // product codes of the installers for Windows
}

// notBuilt ends a template that needs a file which this run did not make.
type notBuilt struct{ target }

func (n notBuilt) Error() string { return n.String() + " is not built" }

func (r *release) fields() (fields, error) {
	npm, _, _ := strings.Cut(string(r.version), "+")
	f := fields{Version: string(r.version), NPMVersion: npm, PkgVersion: joined(r.version), Base: r.names.base, Summary: summary, Signer: signer,
		NPM: r.names.full(""), Targets: r.npmTargets(), MSI: map[string]string{}}
	if r.names.npm != product {
		f.Alias = r.names.npm
	}
	for _, arch := range []string{"amd64", "arm64"} {
		f.MSI[arch] = guid("product", string(r.version), arch)
	}
	keys, err := os.ReadFile(r.signers)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f.Signers = strings.TrimSpace(string(keys))
	if strings.ContainsAny(f.Signers, "'\\") {
		return f, fmt.Errorf("%s has a quote or a backslash, which the install scripts cannot carry", r.signers)
	}
	return f, nil
}

// render renders one template. In it, sum and name are of a target's file: sum
// "linux/amd64" ".tar.gz".
func (r *release) render(file string, data fields) ([]byte, error) {
	of := func(system, extension string) (target, error) {
		os, arch, _ := strings.Cut(system, "/")
		t := target{os, arch}
		if !slices.Contains(r.targets, t) {
			return t, notBuilt{t}
		}
		return t, nil
	}
	text, err := ways.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t, err := template.New(path.Base(file)).Funcs(template.FuncMap{
		"sum": func(system, extension string) (string, error) {
			t, err := of(system, extension)
			if err != nil {
				return "", err
			}
			return sumOf(r.path(t, extension))
		},
		"name": func(system, extension string) (string, error) {
			t, err := of(system, extension)
			return r.name(t, extension), err
		},
		"upper": strings.ToUpper,
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// waysIn renders everything below ways.
func (r *release) waysIn(context.Context) error {
	data, err := r.fields()
	if err != nil {
		return err
	}
	entries, err := ways.ReadDir("ways")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := r.render("ways/"+e.Name(), data)
		if missing, ok := errors.AsType[notBuilt](err); ok {
			fmt.Printf("== not rendered: %s: %v\n", e.Name(), missing)
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, e.Name()), text, 0o644); err != nil {
			return err
		}
	}
	if err := r.npm("npm", data.NPM, data, nil); err != nil {
		return err
	}
	for _, t := range data.Targets {
		data.Target = t
		var own []file
		for _, name := range programs {
			own = append(own, file{programFile, "bin/" + t.exe(name), r.program(t.target, name)})
		}
		own = append(own, file{textFile, licencesName, filepath.Join(r.textDir(), licencesName)})
		if err := r.npm("npm-platform", t.Name, data, own); err != nil {
			return err
		}
	}
	return nil
}

// npm packs a package of npm: the files of a directory of templates, and others.
func (r *release) npm(dir, name string, data fields, files []file) error {
	entries, err := ways.ReadDir("ways/" + dir)
	if err != nil {
		return err
	}
	base := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-") // as npm pack names it
	work := filepath.Join(r.work, "npm", base)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		text, err := r.render("ways/"+dir+"/"+e.Name(), data)
		if err != nil {
			return err
		}
		from := filepath.Join(work, e.Name())
		if err := os.WriteFile(from, text, 0o644); err != nil {
			return err
		}
		files = append(files, file{textFile, e.Name(), from})
	}
	f, err := os.Create(filepath.Join(r.out, base+"-"+data.NPMVersion+".tgz"))
	if err != nil {
		return err
	}
	return errors.Join(writeTar(f, "package", r.epoch, files), f.Close())
}
