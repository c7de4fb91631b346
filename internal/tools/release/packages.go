package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	summary     = "lends terminals of this machine to remote agent hosts"
	description = summary + `
A daemon of the user's connects out to agent hosts that speak the Agent Host
Protocol and shows them what the terminals print that are lent to them. Nobody
there can type. tether-host is a reference host.`
	maintainer = "The tether authors"
)

// The scripts that package managers run, one set for all kinds. They start nothing: each
// user decides about their terminals.
//
//go:embed package/*.sh
var scripts embed.FS

// packager is a kind of Linux package: where it differs from the others.
type packager struct {
	name, extension string
	zsh             string // directory for completions
	version         func(version) string
	release         string // appended by the kind to the package's version
	description     string // where it may have several lines, all of it
}

var packagers = []packager{
	{"deb", ".deb", "/usr/share/zsh/vendor-completions", tilde, "", description},
	{"rpm", ".rpm", "/usr/share/zsh/site-functions", tilde, "1", description},
	{"apk", ".apk", "/usr/share/zsh/site-functions", underscore, "r0", summary},
	{"archlinux", ".pkg.tar.zst", "/usr/share/zsh/site-functions", joined, "1", summary},
}

// tilde sorts a pre-release before its release for dpkg and rpm: 1.2.3~rc1.
func tilde(v version) string { return strings.Replace(string(v), "-", "~", 1) }

// underscore does so for apk, which knows no words after a plus: 1.2.3_rc1.
func underscore(v version) string {
	s, _, _ := strings.Cut(string(v), "+")
	return strings.Replace(s, "-", "_", 1)
}

// joined does so for pacman: 1.2.3rc1.
func joined(v version) string { return strings.Replace(string(v), "-", "", 1) }

// nfpmConfig is the part of nfpm's configuration that is used here
// (https://nfpm.goreleaser.com/configuration). JSON is YAML.
type nfpmConfig struct {
	Name          string            `json:"name"`
	Arch          string            `json:"arch"`
	Platform      string            `json:"platform"`
	Version       string            `json:"version"`
	VersionSchema string            `json:"version_schema"`
	Release       string            `json:"release,omitempty"`
	Section       string            `json:"section"`
	Priority      string            `json:"priority"`
	Maintainer    string            `json:"maintainer"`
	Description   string            `json:"description"`
	License       string            `json:"license"`
	MTime         time.Time         `json:"mtime"`
	Contents      []nfpmContent     `json:"contents"`
	Scripts       map[string]string `json:"scripts"`
	RPM           map[string]any    `json:"rpm"`
	Deb           map[string]any    `json:"deb"`
	APK           map[string]any    `json:"apk"`
	ArchLinux     map[string]any    `json:"archlinux"`
}

type nfpmContent struct {
	Source      string       `json:"src"`
	Destination string       `json:"dst"`
	Info        nfpmFileInfo `json:"file_info"`
}

type nfpmFileInfo struct {
	Mode  int       `json:"mode"`
	MTime time.Time `json:"mtime"`
}

// place is where a file is on Linux.
func (p packager) place(f file) string {
	base := strings.TrimSuffix(f.name, ".bash")
	switch f.kind {
	case programFile:
		return "/usr/bin/" + f.name
	case manualFile:
		return "/usr/share/man/man1/" + f.name + ".gz"
	case docFile:
		return "/usr/share/doc/tether/docs/" + f.name
	case bashFile:
		return "/usr/share/bash-completion/completions/" + base
	case zshFile:
		return path.Join(p.zsh, f.name)
	case fishFile:
		return "/usr/share/fish/vendor_completions.d/" + f.name
	case powerFile: // no system has a place for these
		return "/usr/share/tether/completions/" + f.name
	}
	if f.name == licencesName {
		return "/usr/share/doc/tether/copyright"
	}
	return "/usr/share/doc/tether/" + f.name
}

// config is a pure function of the package's contents. Pages are expected compressed,
// with .gz after their name.
func (p packager) config(v version, arch string, when time.Time, files []file, scriptDir string) nfpmConfig {
	script := func(name string) string { return filepath.Join(scriptDir, name) }
	upgraded := map[string]any{"scripts": map[string]string{"postupgrade": script("postupgrade.sh")}}
	c := nfpmConfig{
		Name: product, Arch: arch, Platform: "linux", Version: p.version(v), VersionSchema: "none", Release: p.release,
		Section: "utils", Priority: "optional", Maintainer: maintainer, Description: p.description, License: "MIT", MTime: when,
		Scripts: map[string]string{"postinstall": script("postinstall.sh"), "preremove": script("preremove.sh")},
		// The name of the machine it is built on is not to be in it.
		RPM: map[string]any{"buildhost": "localhost", "summary": summary},
		// xz would save a tenth, and takes ten times as long.
		Deb:       map[string]any{"compression": "gzip"},
		APK:       upgraded,
		ArchLinux: map[string]any{"packager": maintainer, "scripts": upgraded["scripts"]},
	}
	for _, f := range files {
		from := f.from
		if f.kind == manualFile {
			from += ".gz"
		}
		c.Contents = append(c.Contents, nfpmContent{from, p.place(f), nfpmFileInfo{int(f.mode()), when}})
	}
	return c
}

// packages makes the Linux packages.
func (r *release) packages(ctx context.Context) error {
	scriptDir := filepath.Join(r.work, "scripts")
	if err := writeScripts(scriptDir, r.epoch); err != nil {
		return err
	}
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		files, err := r.files(t)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.kind == manualFile {
				if err := compressed(f.from, f.from+".gz"); err != nil {
					return err
				}
			}
		}
		for _, p := range packagers {
			if r.only != "" && r.only != p.extension {
				continue
			}
			config, err := json.MarshalIndent(p.config(r.version, t.arch, r.epoch, files, scriptDir), "", "  ")
			if err != nil {
				return err
			}
			name := filepath.Join(r.work, p.name+"-"+t.arch+".yaml")
			if err := os.WriteFile(name, config, 0o644); err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, filepath.Join(r.tools, "nfpm"), "package", "--config", name, "--packager", p.name, "--target", r.path(t, p.extension))
			cmd.Env = r.dated()
			if err := runQuiet(cmd); err != nil {
				return fmt.Errorf("%s: %w", r.name(t, p.extension), err)
			}
		}
	}
	return nil
}

// writeScripts puts the scripts where nfpm finds them, with the time that apk packages
// get from them.
func writeScripts(dir string, epoch time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := scripts.ReadDir("package")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := scripts.ReadFile("package/" + e.Name())
		if err != nil {
			return err
		}
		name := filepath.Join(dir, e.Name())
		if err := os.WriteFile(name, text, 0o755); err != nil {
			return err
		}
		if err := redate(name, epoch); err != nil {
			return err
		}
	}
	return nil
}
