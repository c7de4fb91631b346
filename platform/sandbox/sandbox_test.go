package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/platform/sandbox"
)

// The test's own program is the helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Verb {
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// kinds runs f with each kind that works here.
func kinds(t *testing.T, f func(t *testing.T, k sandbox.Kind)) {
	for _, k := range []sandbox.Kind{sandbox.Landlock, sandbox.Bwrap} {
		t.Run(string(k), func(t *testing.T) {
			argv, err := sandbox.Wrap(k, sandbox.Profile{}, self(t), []string{"true"})
			if errors.Is(err, sandbox.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil && k == sandbox.Bwrap {
				t.Skipf("bwrap may not make namespaces here: %v: %s", err, out)
			}
			f(t, k)
		})
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a line for sh, confined, and returns what it printed.
func run(t *testing.T, k sandbox.Kind, p sandbox.Profile, line string) (string, error) {
	t.Helper()
	argv, err := sandbox.Wrap(k, p, self(t), []string{"sh", "-c", line})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = p.Writable[0]
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestConfined(t *testing.T) {
	kinds(t, func(t *testing.T, k sandbox.Kind) {
		base := t.TempDir()
		in, out := filepath.Join(base, "in"), filepath.Join(base, "out")
		for _, dir := range []string{in, out, filepath.Join(out, "dir")} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		write := func(name string) {
			if err := os.WriteFile(name, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(filepath.Join(out, "file"))
		write(filepath.Join(base, "one"))
		p := sandbox.Profile{Writable: []string{in, filepath.Join(base, "one"), filepath.Join(base, "absent")}}
		for _, c := range []struct {
			name, line string
			allowed    bool
		}{
			{"write inside", "echo x > a && cat a", true},
			{"make and remove inside", "mkdir d && touch d/f && mv d/f g && rm g && rmdir d && ln -s x l && rm l && mkfifo p && rm p", true},
			{"a file of its own", "echo x > ../one && : > ../one", true},
			{"read outside", "cat ../out/file && ls ../out && cat /etc/passwd > /dev/null", true},
			{"devices", "echo x > /dev/null && head -c 1 /dev/zero > /dev/null", true},
			{"write outside", "echo x > ../out/new", false},
			{"append outside", "echo x >> ../out/file", false},
			{"truncate outside", ": > ../out/file", false},
			{"truncate without opening to write", "truncate -s 0 ../out/file", false},
			{"remove outside", "rm ../out/file", false},
			{"remove a directory", "rmdir ../out/dir", false},
			{"make a directory", "mkdir ../out/new", false},
			{"make a link", "ln -s x ../out/new", false},
			{"make a pipe", "mkfifo ../out/new", false},
			{"move out", "echo x > m && mv m ../out/m", false},
			{"move in", "mv ../out/file .", false},
			{"link in", "ln ../out/file linked && echo x > linked", false},
			{"replace its own file", "rm ../one", false},
			{"through a link", "ln -s ../out/file way && echo x > way", false},
			{"in the home", "echo x > $HOME/.tether-sandbox-test", false},
			{"from a child of a child", "sh -c '(setsid sh -c \"echo x > ../out/new\")'", false},
			{"the absent one cannot be made", "echo x > ../absent", false},
		} {
			t.Run(c.name, func(t *testing.T) {
				text, err := run(t, k, p, c.line)
				if (err == nil) != c.allowed {
					t.Errorf("%s: %v, %s; want allowed %v", c.line, err, text, c.allowed)
				}
				data, err := os.ReadFile(filepath.Join(out, "file"))
				if err != nil || string(data) != "kept" {
					t.Fatalf("the file outside is %q, %v", data, err)
				}
				if left, err := os.ReadDir(out); err != nil || len(left) != 2 {
					t.Fatalf("outside is %v, %v", left, err)
				}
			})
		}
	})
}

// A set-user-id program gives nothing back, and nobody outside is signalled.
func TestNoWayBack(t *testing.T) {
	kinds(t, func(t *testing.T, k sandbox.Kind) {
		p := sandbox.Profile{Writable: []string{t.TempDir()}}
		text, err := run(t, k, p, "grep NoNewPrivs /proc/self/status")
		if err != nil || strings.Join(strings.Fields(text), " ") != "NoNewPrivs: 1" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestStatus(t *testing.T) {
	kinds(t, func(t *testing.T, k sandbox.Kind) {
		p := sandbox.Profile{Writable: []string{t.TempDir()}}
		for line, want := range map[string]int{"exit 7": 7, "true": 0} {
			_, err := run(t, k, p, line)
			var exit *exec.ExitError
			if errors.As(err, &exit); want != 0 && (exit == nil || exit.ExitCode() != want) || want == 0 && err != nil {
				t.Errorf("%s: %v, want status %d", line, err, want)
			}
		}
		argv, err := sandbox.Wrap(k, p, self(t), []string{"no-such-program-here"})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(out), "no-such-program-here") {
			t.Errorf("%s, %v", out, err)
		}
	})
}

func TestHelperRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"--"}, {"ls"}, {"--write"}, {"--write", "relative", "--", "ls"}, {"--write", "/x"}, {"--", ""}, {"--read", "/", "--", "ls"}} {
		if status := sandbox.Main(args); status != 125 {
			t.Errorf("%q: status %d, want 125", args, status)
		}
	}
}

func TestWrap(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	p := sandbox.Profile{Writable: []string{"/w", "/x"}, Hidden: []string{"/h"}}
	for _, c := range []struct {
		name string
		kind sandbox.Kind
		p    sandbox.Profile
		self string
		argv []string
		want string
	}{
		{"relative", sandbox.Auto, sandbox.Profile{Writable: []string{"w"}}, "/self", []string{"a"}, `"w" is not an absolute path`},
		{"relative hidden", sandbox.Auto, sandbox.Profile{Hidden: []string{"."}}, "/self", []string{"a"}, "is not an absolute path"},
		{"relative self", sandbox.Auto, p, "tether", []string{"a"}, `"tether" is not an absolute path`},
		{"nothing", sandbox.Auto, p, "/self", nil, "no command"},
		{"kind", "jail", p, "/self", []string{"a"}, `no kind "jail"`},
	} {
		if _, err := sandbox.Wrap(c.kind, c.p, c.self, c.argv); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	argv, err := sandbox.Wrap(sandbox.Landlock, p, "/self", []string{"a", "--write", "--"})
	if errors.Is(err, sandbox.ErrUnsupported) {
		t.Skip(err)
	}
	want := []string{"/self", "sandbox", "--write", "/w", "--write", "/x", "--", "a", "--write", "--"}
	if d := cmp.Diff(want, argv); err != nil || d != "" {
		t.Errorf("%v\n-want +got:\n%s", err, d)
	}
}

func TestBwrapArgv(t *testing.T) {
	got := sandbox.BwrapArgv("/usr/bin/bwrap", sandbox.Profile{Writable: []string{"/w"}, Hidden: []string{"/h"}}, []string{"a", "b"})
	want := strings.Fields("/usr/bin/bwrap --die-with-parent --ro-bind / / --dev-bind /dev /dev --bind-try /w /w --tmpfs /h -- a b")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestTemporary(t *testing.T) {
	if all := sandbox.Temporary(); !slices.Contains(all, os.TempDir()) {
		t.Errorf("%q lacks %s", all, os.TempDir())
	}
}

// Where there is nothing to confine with, that is said, not passed over.
func TestUnsupported(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("for other systems")
	}
	for _, k := range []sandbox.Kind{sandbox.Auto, sandbox.Landlock, sandbox.Bwrap} {
		if argv, err := sandbox.Wrap(k, sandbox.Profile{}, self(t), []string{"a"}); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("%s: %q, %v", k, argv, err)
		}
	}
}
