// Command release builds everything that people install: both programs for six targets,
// packages, archives, checksums and a bill of materials. Two runs for one commit give the
// same bytes; scripts/release.sh installs the tools that it calls.
//
//	go run ./internal/tools/release
//	go run ./internal/tools/release -version 0.0.1 -targets linux/amd64 -o /tmp/old
//
// The files, in -o:
//
//	tether_VERSION_OS_ARCH.tar.gz, .zip     programs, manual, completions, licences
//	tether_VERSION_linux_ARCH.deb, .rpm, …  the same as packages of Linux distributions
//	tether_VERSION_windows_ARCH.msi         the same for one user of Windows
//	install.sh, install.ps1                 installs an archive; from it, as from all below, the checksums and the base URL
//	tether.rb, tether.json, …               manifests of Homebrew, Scoop, winget, pacman (PKGBUILD) and Nix
//	NAME-VERSION.tgz                        packages of npm: a small one, and one for each target
//	tether_VERSION.cdx.json                 CycloneDX: the modules linked into each program
//	SHA256SUMS                              of all of them
//	SHA256SUMS.sig                          its signature, with -key
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// product is the name of the package, and of the first of its programs.
const product = "tether"

// programs are the commands that are shipped.
var programs = []string{"tether", "tether-host"}

// release is one run.
type release struct {
	out, work string // directories, absolute; made anew
	tools     string // directory of nfpm
	key       string // signing key; "" is none
	signers   string // public keys
	version   version
	epoch     time.Time // of the commit: the only time in the results
	tags      string    // build tags, for tests
	only      string    // extension of the only packages that are made, for tests; "" makes everything
	targets   []target
	names     names
}

// target is a system as Go names it.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// exe is a program's file name there.
func (t target) exe(name string) string {
	if t.os == "windows" {
		return name + ".exe"
	}
	return name
}

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	var (
		out     = f.String("o", "dist/release", "`directory` for the results; it is emptied first")
		work    = f.String("work", "dist/work", "`directory` for intermediate files; it is emptied first")
		tools   = f.String("tools", "bin/tools", "`directory` of nfpm")
		v       = f.String("version", "", "`version`, instead of what git says")
		targets = f.String("targets", allTargets, "`systems` to build for")
		tags    = f.String("tags", "", "build `tags`, for tests")
		only    = f.String("only", "", "`extension`, .deb or .msi, of the only packages that are made, for tests")
		base    = f.String("base-url", "", "`address` of the directory from which people download, instead of the README's placeholder")
		npm     = f.String("npm-name", product, "`name` of the package of npm")
		scope   = f.String("npm-scope", "", "`scope` of the packages of npm, such as @example")
		key     = f.String("key", os.Getenv(keyVar), "private `key` of OpenSSH's that signs the checksums, instead of "+keyVar)
	)
	if err := f.Parse(args); err != nil {
		return err
	}
	r := &release{tags: *tags, only: *only, key: *key}
	var err error
	for _, dir := range []struct {
		to   *string
		from string
	}{{&r.out, *out}, {&r.work, *work}, {&r.tools, *tools}, {&r.signers, signers}} {
		if *dir.to, err = filepath.Abs(dir.from); err != nil {
			return err
		}
	}
	if r.targets, err = parseTargets(*targets); err != nil {
		return err
	}
	if r.version, err = gitVersion(ctx, *v); err != nil {
		return err
	}
	if r.names, err = parseNames(*base, *npm, *scope); err != nil {
		return err
	}
	if r.epoch, err = gitEpoch(ctx); err != nil {
		return err
	}
	return r.make(ctx)
}

func parseTargets(list string) ([]target, error) {
	var all []target
	for word := range strings.SplitSeq(list, ",") {
		if !strings.Contains(","+allTargets+",", ","+word+",") {
			return nil, fmt.Errorf("-targets: there is no %q; take some of %s", word, allTargets)
		}
		system, arch, _ := strings.Cut(word, "/")
		all = append(all, target{system, arch})
	}
	return all, nil
}

// make does it all, and says how long each part took.
func (r *release) make(ctx context.Context) error {
	for _, dir := range []string{r.out, r.work} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	fmt.Printf("== %s %s of %s\n", product, r.version, r.epoch.Format(time.RFC3339))
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"programs", r.build},
		{"manual, completions, licences", r.texts},
		{"archives", r.archives},
		{"packages", r.packages},
		{"installers", r.installers},
		{"install scripts, manifests, packages of npm", r.waysIn},
		{"bill of materials, checksums", r.account},
		{"signature", r.sign},
	} {
		if r.only != "" && !slices.Contains([]string{"programs", "manual, completions, licences", "packages", "installers"}, step.name) {
			continue
		}
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("== %s: %.1f s\n", step.name, time.Since(began).Seconds())
	}
	return r.list(os.Stdout)
}

// name is the file name of an artifact.
func (r *release) name(t target, extension string) string {
	return fmt.Sprintf("%s_%s_%s_%s%s", product, r.version, t.os, t.arch, extension)
}

// path is where an artifact is made.
func (r *release) path(t target, extension string) string {
	return filepath.Join(r.out, r.name(t, extension))
}
