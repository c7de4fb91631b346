package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ base, npm, scope, want string }{
		{"https://x.example/a/", "tether", "", ""},
		{"http://127.0.0.1:8080", "my-tether", "@some", ""},
		{"http://x.example", "tether", "", "-base-url"},
		{"https://x.example/$(id)", "tether", "", "-base-url"},
		{"https://x.example/a'b", "tether", "", "-base-url"},
		{"https://x.example", "Tether", "", "-npm-name"},
		{"https://x.example", "tether", "some", "-npm-scope"},
	} {
		_, err := parseNames(c.base, c.npm, c.scope)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	t.Chdir("../../..")
	if n, err := parseNames("", "tether", ""); err != nil || n.given {
		t.Errorf("the README's placeholder: %+v, %v", n, err)
	}
	readme := must.Get(os.ReadFile("README.md"))(t)
	if address := told.FindSubmatch(readme); strings.Count(string(readme), string(address[1])) != 1 {
		t.Error("the README has the address more than once")
	}
}

// rendered is a release of archives that are not archives, with everything that is
// rendered for them.
func rendered(t *testing.T, targets, scope string) *release {
	t.Helper()
	all, err := parseTargets(targets)
	must.Do(t, err)
	r := &release{out: t.TempDir(), work: t.TempDir(), version: "1.2.3-rc1+4.gabc", epoch: when, targets: all, signers: filepath.Join(t.TempDir(), "signers")}
	if r.names, err = parseNames("https://x.example/dl", "my-tether", scope); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, extension := range []string{".tar.gz", ".zip", ".msi"} {
			write(t, r.path(s, extension), "archive of "+s.String())
		}
		for _, name := range programs {
			must.Do(t, os.MkdirAll(filepath.Dir(r.program(s, name)), 0o755))
			write(t, r.program(s, name), name)
		}
	}
	must.Do(t, os.MkdirAll(r.textDir(), 0o755))
	write(t, filepath.Join(r.textDir(), licencesName), "licences")
	must.Do(t, r.waysIn(t.Context()))
	return r
}

func text(t *testing.T, elements ...string) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(elements...)))(t)
	return string(data)
}

func TestWays(t *testing.T) {
	r := rendered(t, allTargets, "@some")
	for _, c := range []struct {
		file, extension string
		targets         []target
	}{
		{"tether.rb", ".tar.gz", []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}},
		{"flake.nix", ".tar.gz", []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}},
		{"PKGBUILD", ".tar.gz", []target{{"linux", "amd64"}, {"linux", "arm64"}}},
		{"tether.json", ".zip", []target{{"windows", "amd64"}, {"windows", "arm64"}}},
		{"Tether.Tether.installer.yaml", ".msi", []target{{"windows", "amd64"}, {"windows", "arm64"}}},
	} {
		got := text(t, r.out, c.file)
		for _, s := range c.targets {
			sum := must.Get(sumOf(r.path(s, c.extension)))(t)
			if !strings.Contains(strings.ToLower(got), sum) || !strings.Contains(got, r.name(s, c.extension)) || !strings.Contains(got, "https://x.example/dl") {
				t.Errorf("%s has not the address, name or checksum of %s:\n%s", c.file, s, got)
			}
		}
	}
	for _, script := range []string{"install.sh", "install.ps1"} {
		if got := text(t, r.out, script); !strings.Contains(got, "signers = ''") && !strings.Contains(got, "signers=''") || !strings.Contains(got, "'1.2.3-rc1+4.gabc'") {
			t.Errorf("%s:\n%s", script, got)
		}
	}
	var p struct {
		Name, Version        string
		Bin                  map[string]string
		OptionalDependencies map[string]string
		OS, CPU              []string
	}
	must.Do(t, json.Unmarshal([]byte(text(t, r.work, "npm", "some-my-tether", "package.json")), &p))
	if p.Name != "@some/my-tether" || p.Version != "1.2.3-rc1" || p.Bin["my-tether"] != "tether.js" || len(p.OptionalDependencies) != 6 || p.OptionalDependencies["@some/my-tether-win32-x64"] != p.Version {
		t.Errorf("the small package: %+v", p)
	}
	if err := json.Unmarshal([]byte(text(t, r.work, "npm", "some-my-tether-win32-x64", "package.json")), &p); err != nil || fmt.Sprint(p.Name, p.OS, p.CPU) != "@some/my-tether-win32-x64[win32] [x64]" {
		t.Errorf("the package for Windows: %+v, %v", p, err)
	}
	if got, err := filepath.Glob(filepath.Join(r.out, "some-my-tether*-1.2.3-rc1.tgz")); err != nil || len(got) != 7 {
		t.Errorf("packages of npm: %q, %v", got, err)
	}
}

// TestWaysOfSome renders only what it has all files for.
func TestWaysOfSome(t *testing.T) {
	r := rendered(t, "linux/amd64,linux/arm64", "")
	for name, want := range map[string]bool{"install.sh": true, "PKGBUILD": true, "tether.rb": false, "tether.json": false, "my-tether-linux-x64-1.2.3-rc1.tgz": true, "my-tether-win32-x64-1.2.3-rc1.tgz": false} {
		if _, err := os.Stat(filepath.Join(r.out, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it: %v", name, err, want)
		}
	}
}

func TestWaysWithAKey(t *testing.T) {
	r := &release{version: "1.2.3", signers: filepath.Join(t.TempDir(), "signers")}
	const line = `tether-release namespaces="tether-release" ssh-ed25519 AAAA`
	write(t, r.signers, line+"\n")
	f := must.Get(r.fields())(t)
	for _, script := range []string{"install.sh", "install.ps1"} {
		if got, err := r.render("ways/"+script, f); err != nil || !strings.Contains(string(got), "'"+line+"'") {
			t.Errorf("%s: %v:\n%s", script, err, got)
		}
	}
	write(t, r.signers, "it's no key")
	if _, err := r.fields(); err == nil {
		t.Error("a quote was taken")
	}
}
