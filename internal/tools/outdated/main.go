// Command outdated fails if a direct dependency is more than 60 days behind its registry:
// a newer version than the used one has been out for longer than that. It asks the module
// proxy about go.mod, and npm about the page of tether-host and the programs that tests
// install.
//
//	go run ./internal/tools/outdated
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"time"
)

// grace is how long a newer version may be out.
const grace = 60 * 24 * time.Hour

// samples are programs of npm that stay at a version on purpose: tests compare with their
// output, or need that version of Node.
var samples = regexp.MustCompile(`^(vite|rollup|nodemon|typescript|webpack|webpack-cli|vitest|jest|concurrently|tsx|esbuild|node|zod)$`)

// release is a version of a dependency, and when it came out.
type release struct {
	version string
	at      time.Time
}

// pin is a dependency at its used version.
type pin struct{ name, version string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, time.Now())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outdated:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, to io.Writer, now time.Time) error {
	modules, err := required(ctx)
	if err != nil {
		return err
	}
	packages, err := pinned("scripts/test-tools.sh", "host/web/package.json")
	if err != nil {
		return err
	}
	late := 0
	for _, kind := range []struct {
		pins  []pin
		newer func(context.Context, pin) ([]release, error)
	}{{modules, newerModules}, {packages, newerPackages}} {
		for _, p := range kind.pins {
			newer, err := kind.newer(ctx, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if text := behind(newer, now); text != "" {
				late++
				fmt.Fprintf(to, "%s %s: %s\n", p.name, p.version, text)
			}
		}
	}
	if late > 0 {
		return fmt.Errorf("%d of %d dependencies are behind; bring them up, and docs/DEPENDENCIES.md", late, len(modules)+len(packages))
	}
	fmt.Fprintf(to, "%d dependencies: no newer version has been out for more than %d days\n", len(modules)+len(packages), int(grace.Hours()/24))
	return nil
}

// behind tells since when a newer version is out, if it is for longer than the grace.
func behind(newer []release, now time.Time) string {
	oldest, newest := release{at: now}, release{}
	for _, r := range newer {
		if r.at.Before(oldest.at) {
			oldest = r
		}
		if r.at.After(newest.at) {
			newest = r
		}
	}
	if now.Sub(oldest.at) <= grace {
		return ""
	}
	return fmt.Sprintf("%s is out since %s; the newest is %s", oldest.version, oldest.at.Format(time.DateOnly), newest.version)
}

// stable tells whether a version is a release, and no pre-release or unnamed commit.
func stable(version string) bool { return !strings.Contains(version, "-") }

// module is the part of go list's answer that is used.
type module struct {
	Path, Version  string
	Versions       []string // sorted
	Time           time.Time
	Main, Indirect bool
	Update         *struct{}
}

func list(ctx context.Context, args ...string) (all []module, err error) {
	out, err := output(ctx, "go", append([]string{"list", "-mod=mod", "-m", "-json"}, args...)...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m module
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

// required are the modules that go.mod requires directly.
func required(ctx context.Context) (all []pin, err error) {
	modules, err := list(ctx, "all")
	for _, m := range modules {
		if !m.Main && !m.Indirect {
			all = append(all, pin{m.Path, m.Version})
		}
	}
	return all, err
}

func newerModules(ctx context.Context, p pin) (newer []release, err error) {
	known, err := list(ctx, "-u", "-versions", p.name)
	if err != nil || len(known) == 0 || known[0].Update == nil {
		return nil, err
	}
	var queries []string
	after := false
	for _, v := range known[0].Versions {
		if after && stable(v) {
			queries = append(queries, p.name+"@"+v)
		}
		after = after || v == p.version
	}
	all, err := list(ctx, queries...)
	for _, m := range all {
		newer = append(newer, release{m.Version, m.Time})
	}
	return newer, err
}

var pins = regexp.MustCompile(`["\s]((?:@[a-z0-9-]+/)?[a-z0-9-]+)(?:@|": ")(\d+\.\d+\.\d+)\b`)

// pinned are the packages of npm that files name with their version.
func pinned(files ...string) (all []pin, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range pins.FindAllStringSubmatch(string(text), -1) {
			if !samples.MatchString(m[1]) {
				all = append(all, pin{m[1], m[2]})
			}
		}
	}
	return all, nil
}

func newerPackages(ctx context.Context, p pin) (newer []release, err error) {
	out, err := output(ctx, "npm", "view", "--json", p.name, "time")
	if err != nil {
		return nil, err
	}
	var times map[string]time.Time
	if err := json.Unmarshal(out, &times); err != nil {
		return nil, err
	}
	used, ok := times[p.version]
	if !ok {
		return nil, fmt.Errorf("npm knows no %s", p.version)
	}
	for version, at := range times {
		if at.After(used) && stable(version) && version != "modified" && !sameOrOlder(version, p.version) {
			newer = append(newer, release{version, at})
		}
	}
	return newer, nil
}

// sameOrOlder compares three numbers: a fix of an older version may come out after a
// newer version.
func sameOrOlder(a, b string) bool {
	var x, y [3]int
	fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return true
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
