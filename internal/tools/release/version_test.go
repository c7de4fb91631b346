package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

func TestDescribedVersion(t *testing.T) {
	for _, c := range []struct {
		says    string
		commits int
		want    version
		err     string
	}{
		{"v1.2.3-0-gabcdef0123", 9, "1.2.3", ""},
		{"v1.2.3-rc1-0-gabcdef0123", 9, "1.2.3-rc1", ""},
		{"v1.2.3-4-gabcdef0123", 9, "1.2.4-pre4+gabcdef0123", ""},
		{"v1.2.3-0-gabcdef0123-dirty", 9, "1.2.4-pre0+gabcdef0123.local", ""},
		{"v1.2.3-rc1-4-gabcdef0123", 9, "1.2.3-rc1+4.gabcdef0123", ""},
		{"abcdef0123", 317, "0.1.0-pre317+gabcdef0123", ""},
		{"abcdef0123-dirty", 317, "0.1.0-pre317+gabcdef0123.local", ""},
		{"v1.2-0-gabcdef0123", 9, "", "want a tag such as v1.2.3"},
		{"v1.2.3-nightly-0-gabcdef0123", 9, "", "want a tag such as v1.2.3"},
		{"v1.2.99999999999-4-gabcdef0123", 9, "", "is no version"},
		{"", 0, "", "want a tag"},
	} {
		got, err := describedVersion(c.says, c.commits)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("describedVersion(%q, %d) = %q, %v; want %q, %q", c.says, c.commits, got, err, c.want, c.err)
		}
	}
}

// Each kind of package writes versions in its own way, and must have a pre-release before
// its release.
func TestVersionForms(t *testing.T) {
	for _, c := range []struct{ v, core, tilde, underscore, joined version }{
		{"1.2.3", "1.2.3", "1.2.3", "1.2.3", "1.2.3"},
		{"1.2.3-rc1", "1.2.3", "1.2.3~rc1", "1.2.3_rc1", "1.2.3rc1"},
		{"1.2.4-pre5+gabc", "1.2.4", "1.2.4~pre5+gabc", "1.2.4_pre5", "1.2.4pre5+gabc"},
	} {
		v := must.Get(parseVersion(string(c.v)))(t)
		for form, got := range map[version]string{c.core: v.core(), c.tilde: tilde(v), c.underscore: underscore(v), c.joined: joined(v)} {
			if got != string(form) {
				t.Errorf("%s: got %q, want %q", v, got, form)
			}
		}
	}
	for _, bad := range []string{"", "1.2", "v1.2.3", "1.2.3-dev", "1.2.3-rc.1", "1.2.3+A B", "1.2.3\n", "1000.0.0"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q was taken as %q", bad, v)
		}
	}
}

// dpkg is who decides whether an upgrade is one.
func TestVersionsInOrder(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed")
	}
	ordered := []version{"0.0.1", "0.1.0-pre9+gaaa", "0.1.0-pre317+gbbb", "0.1.0-rc1", "0.1.0-rc1+4.gccc", "0.1.0", "0.1.1-pre1+gddd", "0.1.1"}
	for i, v := range ordered[1:] {
		if err := exec.Command("dpkg", "--compare-versions", tilde(ordered[i]), "lt", tilde(v)).Run(); err != nil {
			t.Errorf("dpkg does not see %s before %s: %v", ordered[i], v, err)
		}
	}
}

func TestGiven(t *testing.T) {
	t.Setenv(epochVar, "86400")
	if when, err := gitEpoch(t.Context()); err != nil || !when.Equal(time.Unix(86400, 0)) || when.Location() != time.UTC {
		t.Errorf("epoch: %v, %v", when, err)
	}
	t.Setenv(epochVar, "-1")
	if when, err := gitEpoch(t.Context()); err == nil {
		t.Errorf("an epoch before 1970 was taken as %v", when)
	}
	if v, err := gitVersion(t.Context(), "9.8.7"); v != "9.8.7" || err != nil {
		t.Errorf("a version that was given: %q, %v", v, err)
	}
}

// Without git the error names the missing option; a fresh clone has no tag.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	t.Setenv(epochVar, "")
	if v, err := gitVersion(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "give -version and SOURCE_DATE_EPOCH") {
		t.Errorf("without git: %q, %v", v, err)
	}
	if when, err := gitEpoch(t.Context()); err == nil {
		t.Errorf("without git: %v", when)
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "--allow-empty", "--date=@100", "-m", "one"}} {
		cmd := exec.CommandContext(context.Background(), "git", args...)
		cmd.Env = append(cmd.Environ(), "GIT_COMMITTER_DATE=@100 +0000")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	v, err := gitVersion(t.Context(), "")
	if err != nil || !strings.HasPrefix(string(v), "0.1.0-pre1+g") || strings.HasSuffix(string(v), ".local") {
		t.Errorf("without a tag: %q, %v", v, err)
	}
	if when, err := gitEpoch(t.Context()); err != nil || when.Unix() != 100 {
		t.Errorf("time of the commit: %v, %v", when, err)
	}
}
