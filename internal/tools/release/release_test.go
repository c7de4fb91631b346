package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

var (
	when  = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	linux = target{"linux", "amd64"}
)

// some are a few files that exist.
func some(t *testing.T) []file {
	t.Helper()
	dir := t.TempDir()
	files := []file{{programFile, "tether", ""}, {textFile, licencesName, ""}, {bashFile, "tether.bash", ""}, {zshFile, "_tether", ""},
		{fishFile, "tether.fish", ""}, {powerFile, "tether.ps1", ""}, {manualFile, "tether-run.1", ""}, {docFile, "CONFIG.md", ""}}
	for i := range files {
		files[i].from = filepath.Join(dir, files[i].name)
		must.Do(t, os.WriteFile(files[i].from, []byte("this is "+files[i].name), 0o600))
	}
	return files
}

var portable = []string{"d/tether", "d/LICENSES.txt", "d/completions/tether.bash", "d/completions/_tether", "d/completions/tether.fish",
	"d/completions/tether.ps1", "d/man/man1/tether-run.1", "d/docs/CONFIG.md"}

func TestTargets(t *testing.T) {
	all, err := parseTargets(allTargets)
	if err != nil || len(all) != 6 {
		t.Errorf("all targets: %v, %v", all, err)
	}
	if got := (target{"windows", "arm64"}).exe("tether"); got != "tether.exe" {
		t.Errorf("a program of Windows is named %q", got)
	}
	for _, bad := range []string{"", "linux", "linux/amd64,", "plan9/amd64", "inux/amd64"} {
		if all, err := parseTargets(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, all)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-targets", "x"}, `no "x"`},
		{[]string{"-version", "x"}, `"x" is no version`},
		{[]string{"-nonsense"}, "not defined"},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestTar(t *testing.T) {
	files := some(t)
	var first, second bytes.Buffer
	must.Do(t, errors.Join(writeTar(&first, "d", when, files), redate(files[0].from, time.Unix(1, 0)), writeTar(&second, "d", when, files)))
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	z := must.Get(gzip.NewReader(&first))(t)
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		names = append(names, h.Name)
		data, err := io.ReadAll(r)
		if err != nil || string(data) != "this is "+path.Base(h.Name) {
			t.Errorf("%s: %q, %v", h.Name, data, err)
		}
		if want := int64(0o644); h.Mode != want && !(h.Name == "d/tether" && h.Mode == 0o755) || h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(when) {
			t.Errorf("header of %s: %+v", h.Name, h)
		}
	}
	check.Equal(t, "names", portable, names)
	if err := writeTar(io.Discard, "d", when, []file{{from: files[0].from + "-missing"}}); err == nil {
		t.Error("a file that is missing was packed")
	}
}

func TestZip(t *testing.T) {
	files := some(t)
	var first, second bytes.Buffer
	must.Do(t, errors.Join(writeZip(&first, "d", when, files), writeZip(&second, "d", when.In(time.FixedZone("elsewhere", 3600)), files)))
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	r := must.Get(zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len())))(t)
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
		if !f.Modified.Equal(when) || f.Name == "d/tether" && f.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", f.Name, f.Modified, f.Mode())
		}
	}
	check.Equal(t, "names", portable, names)
	if err := writeZip(io.Discard, "d", when, []file{{from: files[0].from + "-missing"}}); err == nil {
		t.Error("a file that is missing was packed")
	}
}

func TestPackageConfig(t *testing.T) {
	files := some(t)
	for _, p := range packagers {
		c := p.config("1.2.3-rc1", "arm64", when, files, "/scripts")
		places := map[string]string{}
		for _, f := range c.Contents {
			places[strings.TrimSuffix(filepath.Base(f.Source), ".gz")] = f.Destination
			if !f.Info.MTime.Equal(when) || f.Info.Mode != 0o644 && f.Destination != "/usr/bin/tether" {
				t.Errorf("%s: %+v", p.name, f)
			}
		}
		zsh := "/usr/share/zsh/site-functions/_tether"
		if p.name == "deb" {
			zsh = "/usr/share/zsh/vendor-completions/_tether"
		}
		want := map[string]string{"tether": "/usr/bin/tether", licencesName: "/usr/share/doc/tether/copyright", "_tether": zsh,
			"tether.bash": "/usr/share/bash-completion/completions/tether", "tether.fish": "/usr/share/fish/vendor_completions.d/tether.fish",
			"tether.ps1": "/usr/share/tether/completions/tether.ps1", "tether-run.1": "/usr/share/man/man1/tether-run.1.gz",
			"CONFIG.md": "/usr/share/doc/tether/docs/CONFIG.md"}
		check.Equal(t, p.name, want, places)
		for _, place := range places {
			if strings.Contains(place, "systemd") {
				t.Errorf("%s brings %s: whose terminals are lent is for each user to say", p.name, place)
			}
		}
		if c.Arch != "arm64" || c.Version != p.version("1.2.3-rc1") || c.VersionSchema != "none" {
			t.Errorf("%s: %+v", p.name, c)
		}
	}
}

// Package managers run these scripts with their own arguments, so the tests use those.
func TestPackageScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts of Linux packages")
	}
	dir := t.TempDir()
	must.Do(t, writeScripts(dir, when))
	if info, err := os.Stat(filepath.Join(dir, "preremove.sh")); err != nil || !info.ModTime().Equal(when) {
		t.Errorf("a script's time: %v, %v", info, err) // packages for apk have it
	}
	for _, c := range []struct{ script, args, want string }{
		{"postinstall.sh", "configure", "tether pair"},
		{"postinstall.sh", "configure 0.0.1", "tether daemon --replace --background"},
		{"postinstall.sh", "1", "tether pair"},
		{"postinstall.sh", "2", "tether daemon --replace --background"},
		{"postinstall.sh", "1.2.3-r0", "tether pair"},
		{"postupgrade.sh", "1.2.3-r0 1.2.2-r0", "tether daemon --replace --background"},
		{"preremove.sh", "upgrade 1.2.3", ""},
		{"preremove.sh", "1", ""},
	} {
		out, err := exec.Command("sh", append([]string{"-eu", filepath.Join(dir, c.script)}, append(strings.Fields(c.args), "")...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) || c.want == "" && len(out) > 0 {
			t.Errorf("%s %s: %v, %q; want %q", c.script, c.args, err, out, c.want)
		}
	}
}

func TestGUID(t *testing.T) {
	a := guid("product", "1.2.3", "amd64")
	if a != guid("product", "1.2.3", "amd64") || a == guid("product", "1.2.3", "arm64") || a == guid("product1.2.3", "amd64") {
		t.Error("a GUID is not that of its words")
	}
	if len(a) != 36 || a[14] != '5' || !strings.ContainsRune("89AB", rune(a[19])) || a != strings.ToUpper(a) {
		t.Errorf("%s is no UUID of version 5", a)
	}
}

func TestInstallerSource(t *testing.T) {
	files := some(t)
	files[0].name = "tether.exe"
	r := &release{version: "1.2.3-rc1+gabc", work: filepath.Dir(filepath.Dir(files[0].from))}
	text := must.Get(r.source(target{"windows", "amd64"}, files))(t)
	seen := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok {
			seen[e.Name.Local]++
			for _, a := range e.Attr {
				if a.Name.Local == "Id" && e.Name.Local != "ComponentRef" {
					seen["id "+a.Value]++
				}
				if a.Name.Local == "Source" && filepath.IsAbs(a.Value) {
					t.Errorf("wixl takes no absolute path: %s", a.Value)
				}
			}
		}
	}
	if seen["File"] != len(files) || seen["Component"] != 4 || seen["ComponentRef"] != 4 {
		t.Errorf("%d files, %d components, %d references in\n%s", seen["File"], seen["Component"], seen["ComponentRef"], text)
	}
	for what, n := range seen {
		if strings.HasPrefix(what, "id ") && n > 1 {
			t.Errorf("%d elements have the %s", n, what)
		}
	}
	for _, want := range []string{`Version="1.2.3"`, `Description="tether 1.2.3-rc1+gabc"`, upgradeCode, `Id="tether.exe"`, `InstallScope="perUser"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestPURL(t *testing.T) {
	if got := purl("example.org/a/v2", "v2.0.0+incompatible"); got != "pkg:golang/example.org/a/v2@v2.0.0%2Bincompatible" {
		t.Error(got)
	}
}

// The test's own program plays a shipped one: its contents are known.
func TestBill(t *testing.T) {
	self := must.Get(os.Executable())(t)
	info := must.Get(buildinfo.ReadFile(self))(t)
	data := must.Get(os.ReadFile(self))(t)
	r := &release{version: "1.2.3", epoch: when, work: t.TempDir(), out: t.TempDir(), targets: []target{linux}}
	for _, name := range programs {
		p := r.program(linux, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, data, 0o755)))
	}
	must.Do(t, r.account(t.Context()))
	text := must.Get(os.ReadFile(filepath.Join(r.out, "tether_1.2.3.cdx.json")))(t)
	var b bom
	must.Do(t, json.Unmarshal(text, &b))
	refs := map[string]bool{b.Metadata.Component.Ref: true}
	for _, c := range b.Components {
		if refs[c.Ref] {
			t.Errorf("%s is there twice", c.Ref)
		}
		refs[c.Ref] = true
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(slices.Clone(d.On), d.Ref) {
			if !refs[ref] {
				t.Errorf("%s depends on %s, which is not listed", d.Ref, ref)
			}
		}
	}
	for _, m := range info.Deps {
		if !refs[purl(m.Path, m.Version)] {
			t.Errorf("%s is linked and not listed", m.Path)
		}
	}
	sum, err := sumOf(self)
	if err != nil || b.Components[0].Hashes[0].Content != sum || b.Components[0].Version != "1.2.3" {
		t.Errorf("first component %+v, want the hash %s, %v", b.Components[0], sum, err)
	}
	checkSums(t, r.out)
	var listed strings.Builder
	if err := r.list(&listed); err != nil || !strings.Contains(listed.String(), fmt.Sprintf("%9d  linux/amd64 tether-host\n", len(data))) {
		t.Errorf("list: %v\n%s", err, &listed)
	}
}

// checkSums has sha256sum read the sums, if it is there.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("sha256sum"); err != nil {
		return
	}
	cmd := exec.Command("sha256sum", "--strict", "-c", sumsName)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), ".cdx.json: OK") {
		t.Errorf("sha256sum -c: %v\n%s", err, out)
	}
}

func TestNotice(t *testing.T) {
	const mit = "Permission is hereby granted, free of\ncharge"
	for _, c := range []struct {
		files string
		text  string
		want  string
	}{
		{"LICENSE main.go", mit, "x 1: LICENSE\n\ntext of LICENSE"},
		{"COPYING.txt", mit, "COPYING.txt"},
		{"license-mit LICENCE", mit, "license-mit"},
		{"licenses.go", mit, "no permissive licence found for x 1"},
		{"LICENSE", "GNU GENERAL PUBLIC LICENSE", "no permissive licence found for x 1"},
		{"", mit, "no permissive licence found for x 1"},
	} {
		dir := t.TempDir()
		for name := range strings.FieldsSeq(c.files) {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("\ntext of "+name+"\n"+c.text+"\n\n"), 0o600))
		}
		var b bytes.Buffer
		if err := notice(&b, "x 1", dir); err != nil {
			b.WriteString(err.Error())
		}
		if !strings.Contains(b.String(), c.want) || strings.Contains(b.String(), "main.go") {
			t.Errorf("%q: %q, want %q", c.files, &b, c.want)
		}
	}
}

// All linked modules have licences, and the manual is complete. It builds the programs
// for this machine, as a release does.
func TestTexts(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed, with which it builds the programs")
	}
	t.Chdir("../../..")
	native := target{runtime.GOOS, runtime.GOARCH}
	r := &release{version: "1.2.3", epoch: when, work: t.TempDir(), out: t.TempDir(), targets: []target{native}}
	must.Do(t, errors.Join(r.build(t.Context()), r.texts(t.Context())))
	files := must.Get(r.files(native))(t)
	kinds := map[kind]int{}
	for _, f := range files {
		kinds[f.kind]++
		if info, err := os.Stat(f.from); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", f.name, info, err)
		}
	}
	for k, least := range map[kind]int{programFile: 2, textFile: 2, bashFile: 2, zshFile: 2, fishFile: 2, powerFile: 2, manualFile: 20, docFile: 10} {
		if kinds[k] < least {
			t.Errorf("%d files of kind %s, want %d", kinds[k], k, least)
		}
	}
	text := must.Get(os.ReadFile(filepath.Join(r.textDir(), licencesName)))(t)
	for _, want := range []string{"The tether authors", "Go, its standard library: LICENSE", "github.com/spf13/cobra v"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q among the licences", want)
		}
	}
	page, err := os.ReadFile(filepath.Join(r.textDir(), "man", "tether.1"))
	if err != nil || !strings.HasPrefix(string(page), `.TH "TETHER" 1 "2026\-01\-02" "tether 1.2.3"`) {
		t.Errorf("the manual: %v, %.200s", err, page)
	}
	for name, want := range map[string]string{ // the page of the program, and that of tether host
		"tether-host.1": `\fB\-\-token\-file\fR`, "tether-hosts.1": `\fBtether host\fR`, "tether-hosts-ls.1": "tether host ls \\-\\-json | jq", "tether-run.1": "tether run \\-\\- npm run dev",
	} {
		page, err := os.ReadFile(filepath.Join(r.textDir(), "man", name))
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s: %v, no %s in\n%s", name, err, want, page)
		}
	}
	if err := r.manual(t.Context(), r.program(native, "tether"), "tether"); err == nil || !strings.Contains(err.Error(), "another program has a page") {
		t.Errorf("two programs with a page of the same name: %v", err)
	}
	out, err := exec.Command(r.program(native, "tether"), "version").Output()
	if err != nil || string(out) != "tether 1.2.3\n" {
		t.Errorf("the program says %q, %v", out, err)
	}
	for _, name := range programs { // large ones take long to compress, and are packed by make test-release
		must.Do(t, os.WriteFile(r.program(native, name), []byte("short"), 0o755))
	}
	check.OK(t, r.archives(t.Context()))
}

func TestCompressed(t *testing.T) {
	f := some(t)[6]
	must.Do(t, compressed(f.from, f.from+".gz"))
	data := must.Get(os.ReadFile(f.from + ".gz"))(t)
	z := must.Get(gzip.NewReader(bytes.NewReader(data)))(t)
	text, err := io.ReadAll(z)
	if err != nil || string(text) != "this is tether-run.1" || z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("%q, %v, header %+v", text, err, z.Header)
	}
	if err := compressed(f.from+"-missing", f.from+".gz"); err == nil {
		t.Error("a page that is missing was compressed")
	}
}
