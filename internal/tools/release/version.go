package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// version is a semantic version without a v, in the subset that packages of all kinds can
// carry: 1.2.3, 1.2.3-rc1, 1.2.4-pre5+gabc1234. A pre-release has no dot and no hyphen,
// and is sorted before the release by all of them.
type version string

var versionForm = regexp.MustCompile(`^(\d{1,3}\.\d{1,3}\.\d{1,5})(-(?:alpha|beta|pre|rc)\d*)?(\+[0-9a-z.]+)?$`)

func parseVersion(s string) (version, error) {
	if !versionForm.MatchString(s) {
		return "", fmt.Errorf("%q is no version; want 1.2.3, 1.2.3-rc1 or 1.2.3-pre4+word", s)
	}
	return version(s), nil
}

// core is the version's three numbers. Windows Installer compares nothing else.
func (v version) core() string {
	core, _, _ := strings.Cut(string(v), "-")
	core, _, _ = strings.Cut(core, "+")
	return core
}

// untagged is the version before the first release.
const untagged = "0.1.0"

var (
	described = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(?:-((?:alpha|beta|pre|rc)\d*))?-(\d+)-g([0-9a-f]+)(-dirty)?$`)
	nameless  = regexp.MustCompile(`^([0-9a-f]+)(-dirty)?$`)
)

// describedVersion makes a version from the output of git describe --long --dirty
// --always and, if there is no tag, the number of commits. Between releases it is a
// pre-release of the next patch.
func describedVersion(says string, commits int) (version, error) {
	if m := nameless.FindStringSubmatch(says); m != nil {
		return parseVersion(fmt.Sprintf("%s-pre%d+g%s", untagged, commits, local(m[1], m[2])))
	}
	m := described.FindStringSubmatch(says)
	if m == nil {
		return "", fmt.Errorf("tag and distance %q: want a tag such as v1.2.3 or v1.2.3-rc1", says)
	}
	core := strings.Join(m[1:4], ".")
	pre, since, commit, dirty := m[4], m[5], m[6], m[7]
	exact := since == "0" && dirty == ""
	switch {
	case exact && pre != "":
		return parseVersion(core + "-" + pre)
	case exact:
		return parseVersion(core)
	case pre != "": // no number is left between two pre-releases, so the commit alone tells
		return parseVersion(core + "-" + pre + "+" + since + ".g" + local(commit, dirty))
	}
	patch, err := strconv.Atoi(m[3])
	if err != nil {
		return "", err
	}
	return parseVersion(fmt.Sprintf("%s.%s.%d-pre%s+g%s", m[1], m[2], patch+1, since, local(commit, dirty)))
}

// local marks a version that was not built from the commit alone.
func local(commit, dirty string) string {
	if dirty != "" {
		return commit + ".local"
	}
	return commit
}

// gitVersion is the given version, or else git's.
func gitVersion(ctx context.Context, given string) (version, error) {
	if given != "" {
		return parseVersion(given)
	}
	says, err := git(ctx, "describe", "--tags", "--long", "--dirty", "--always", "--abbrev=10", "--match", "v[0-9]*")
	if err != nil {
		return "", fmt.Errorf("%w; without git, give -version and SOURCE_DATE_EPOCH", err)
	}
	count, err := git(ctx, "rev-list", "--count", "HEAD")
	if err != nil {
		return "", err
	}
	commits, err := strconv.Atoi(count)
	if err != nil {
		return "", fmt.Errorf("git rev-list: %w", err)
	}
	return describedVersion(says, commits)
}

// epochVar is explained at https://reproducible-builds.org/specs/source-date-epoch/.
const epochVar = "SOURCE_DATE_EPOCH"

// gitEpoch is the time of the commit, or the time in the environment.
func gitEpoch(ctx context.Context) (time.Time, error) {
	seconds := os.Getenv(epochVar)
	if seconds == "" {
		var err error
		if seconds, err = git(ctx, "show", "--no-patch", "--format=%ct", "HEAD"); err != nil {
			return time.Time{}, err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, fmt.Errorf("%s is %q; give seconds since 1970", epochVar, seconds)
	}
	return time.Unix(n, 0).UTC(), nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		why := err.Error()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			why = strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("git %s: %s", args[0], why)
	}
	return strings.TrimSpace(string(out)), nil
}
