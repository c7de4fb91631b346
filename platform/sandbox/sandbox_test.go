package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/sandbox"
)

// helpers are the jobs of the test program when it is started with one of these
// arguments.
var helpers = map[string]func(args []string) int{}

// The test program is the helper of the sandbox, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Verb {
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && helpers[os.Args[1]] != nil {
		os.Exit(helpers[os.Args[1]](os.Args[2:]))
	}
	os.Exit(m.Run())
}

// kinds runs f with each kind that works here.
func kinds(t *testing.T, f func(t *testing.T, k sandbox.Kind)) {
	for _, k := range []sandbox.Kind{sandbox.Wall, sandbox.Landlock} {
		t.Run(string(k), func(t *testing.T) {
			if err := sandbox.Works(k, self(t)); err != nil {
				t.Skip(err)
			}
			f(t, k)
		})
	}
}

func self(t *testing.T) string {
	t.Helper()
	return must.Get(os.Executable())(t)
}

// run runs a line for sh, confined, and returns its output.
func run(t *testing.T, k sandbox.Kind, p sandbox.Profile, line string) (string, error) {
	t.Helper()
	argv := must.Get(sandbox.Wrap(k, p, self(t), []string{"sh", "-c", line}))(t)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = p.Writable[0]
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestConfined(t *testing.T) {
	kinds(t, func(t *testing.T, k sandbox.Kind) {
		base := t.TempDir()
		in, out := filepath.Join(base, "in"), filepath.Join(base, "out")
		for _, dir := range []string{in, out, filepath.Join(out, "dir"), filepath.Join(base, "home")} {
			must.Do(t, os.Mkdir(dir, 0o700))
		}
		write := func(name string) {
			must.Do(t, os.WriteFile(name, []byte("kept"), 0o600))
		}
		write(filepath.Join(out, "file"))
		write(filepath.Join(base, "one"))
		p := sandbox.Profile{Writable: []string{in, filepath.Join(base, "one"), filepath.Join(base, "absent")}, Home: filepath.Join(base, "home")}
		for _, c := range []struct {
			name, line string
			allowed    bool
		}{
			{"write inside", "echo x > a && cat a", true},
			{"make and remove inside", "mkdir d && touch d/f && mv d/f g && rm g && rmdir d && ln -s x l && rm l && mkfifo p && rm p", true},
			{"a file of its own", "echo x > ../one && : > ../one", true},
			{"read the system", "cat /etc/passwd > /dev/null", true},
			{"read outside", "cat ../out/file && ls ../out", k != sandbox.Wall},
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
			{"in the home", "echo x > ../home/file", k == sandbox.Wall}, // in the private one
			{"from a child of a child", "sh -c '(setsid sh -c \"echo x > ../out/new\")'", false},
			{"the absent one cannot be made", "echo x > ../absent", k == sandbox.Wall}, // in memory
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
				if left, err := os.ReadDir(filepath.Join(base, "home")); err != nil || len(left) != 0 {
					t.Fatalf("in the home is %v, %v", left, err)
				}
				if _, err := os.Lstat(filepath.Join(base, "absent")); err == nil {
					t.Fatal("the absent one was made")
				}
				if left, err := os.ReadDir(out); err != nil || len(left) != 2 {
					t.Fatalf("outside is %v, %v", left, err)
				}
			})
		}
	})
}

// A set-user-id program gives no rights back, and no process outside gets a signal.
func TestNoWayBack(t *testing.T) {
	kinds(t, func(t *testing.T, k sandbox.Kind) {
		p := sandbox.Profile{Writable: []string{t.TempDir()}, Home: t.TempDir()}
		text, err := run(t, k, p, "grep NoNewPrivs /proc/self/status")
		if err != nil || strings.Join(strings.Fields(text), " ") != "NoNewPrivs: 1" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestStatus(t *testing.T) {
	kinds(t, func(t *testing.T, k sandbox.Kind) {
		p := sandbox.Profile{Writable: []string{t.TempDir()}, Home: t.TempDir()}
		for line, want := range map[string]int{"exit 7": 7, "true": 0} {
			_, err := run(t, k, p, line)
			var exit *exec.ExitError
			if errors.As(err, &exit); want != 0 && (exit == nil || exit.ExitCode() != want) || want == 0 && err != nil {
				t.Errorf("%s: %v, want status %d", line, err, want)
			}
		}
		argv := must.Get(sandbox.Wrap(k, p, self(t), []string{"no-such-program-here"}))(t)
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir = p.Writable[0]
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "no-such-program-here") {
			t.Errorf("%s, %v", out, err)
		}
	})
}

func TestHelperRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"--"}, {"ls"}, {"wall"}, {"wall", "{}"}, {"wall", "{}", "--"}, {"wall", "{}", "--", ""}, {"wall", "no JSON", "--", "ls"},
		{"jail", "{}", "--", "ls"}, {"--write", "/", "--", "ls"}} {
		if status := sandbox.Main(args); status != 125 {
			t.Errorf("%q: status %d, want 125", args, status)
		}
	}
}

func TestWrap(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	p := sandbox.Profile{Writable: []string{"/w", "/x"}, Hidden: []string{"/h"}, Home: "/home/me"}
	for _, c := range []struct {
		name string
		kind sandbox.Kind
		p    sandbox.Profile
		self string
		argv []string
		want string
	}{
		{"relative", sandbox.Auto, sandbox.Profile{Writable: []string{"w"}, Home: "/"}, "/self", []string{"a"}, `"w" is not an absolute path`},
		{"relative hidden", sandbox.Auto, sandbox.Profile{Hidden: []string{"."}, Home: "/"}, "/self", []string{"a"}, "is not an absolute path"},
		{"without a home", sandbox.Auto, sandbox.Profile{}, "/self", []string{"a"}, "is not an absolute path"},
		{"relative self", sandbox.Auto, p, "tether", []string{"a"}, `"tether" is not an absolute path`},
		{"nothing", sandbox.Auto, p, "/self", nil, "no command"},
		{"kind", "jail", p, "/self", []string{"a"}, `"jail" is not supported`},
		{"hidden", sandbox.Auto, sandbox.Profile{Writable: []string{"/h/x"}, Hidden: []string{"/h"}, Home: "/"}, "/self", []string{"a"}, "cannot grant /h/x"},
		{"secret", sandbox.Auto, sandbox.Profile{Readable: []string{"/home/me/.ssh"}, Home: "/home/me"}, "/self", []string{"a"}, "cannot grant"},
	} {
		if _, err := sandbox.Wrap(c.kind, c.p, c.self, c.argv); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The profile for macOS is rendered on every system. Wrap refuses a kind that does not
// work here; nothing is run instead. On Windows no kind works.
func TestWrapRefusesUnavailableKinds(t *testing.T) {
	dir := testkit.Abs("/work")
	p := sandbox.Profile{Writable: []string{dir}, Home: testkit.Abs("/home")}
	_, none := sandbox.Best(self(t))
	if runtime.GOOS == "windows" && none == nil {
		t.Error("there is a sandbox on Windows, which SECURITY.md does not know")
	}
	refused := 0
	for _, k := range []sandbox.Kind{sandbox.Auto, sandbox.Wall, sandbox.Landlock, sandbox.Seatbelt} {
		works := none
		if k != sandbox.Auto {
			works = sandbox.Works(k, self(t))
		}
		if works == nil {
			continue
		}
		refused++
		if argv, err := sandbox.Wrap(k, p, self(t), []string{"true"}); argv != nil || !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("%s: %q, %v; want %v", k, argv, err, sandbox.ErrUnsupported)
		}
	}
	if refused == 0 {
		t.Error("every kind works, those of other systems too")
	}
}

func TestSeatbelt(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	got := sandbox.SeatbeltProfile(sandbox.Profile{Writable: []string{`/w/"x`}, Hidden: []string{"/state"}, Sockets: []string{"/run/daemon.sock"},
		Temporary: []string{"/tmp"}, Home: "/Users/me", NoNetwork: true})
	for _, want := range []string{"(deny file-write*)\n(allow file-write*\n\t(subpath \"/w/\\\"x\")\n\t(subpath \"/tmp\")\n", "(subpath \"/state\")\n",
		"(subpath \"/Users/me/.ssh\")", "(subpath \"/Users/me/Library/Keychains\")", "(deny signal)\n(allow signal (target same-sandbox))",
		"(deny network*)\n(deny network-outbound (remote unix-socket))\n(allow network*\n\t(local unix-socket (subpath \"/run/daemon.sock\"))"} {
		if !strings.Contains(got, want) {
			t.Errorf("the profile has no %q:\n%s", want, got)
		}
	}
	if open, shut := strings.Count(got, "("), strings.Count(got, ")"); open != shut {
		t.Errorf("%d parentheses open and %d close:\n%s", open, shut, got)
	}
}
