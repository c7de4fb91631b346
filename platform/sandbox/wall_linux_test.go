package sandbox_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/sandbox"
)

func init() { helpers["ways"], helpers["target"], helpers["serve"] = tryAll, beTarget, serve }

// tryAll tries ways out and prints how each ended. Its arguments are their targets,
// whether memory is private, and their names.
func tryAll(args []string) int {
	var o outside
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		panic(err)
	}
	privateMemory = args[1] == "private"
	for _, name := range args[2:] {
		tried := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked, because a way may change its thread
			tried <- ways[name](o)
		}()
		if err := <-tried; err != nil {
			fmt.Printf("%s: held: %s\n", name, strings.ReplaceAll(err.Error(), "\n", ", "))
		} else {
			fmt.Printf("%s: open\n", name)
		}
	}
	return 0
}

// beTarget is the person's process, with sockets, a terminal and shared memory, until its
// standard input ends.
func beTarget(args []string) int {
	var o outside
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	check(json.Unmarshal([]byte(args[0]), &o))
	o.Pid = os.Getpid()
	for _, name := range []string{filepath.Join(o.Run, "bus"), filepath.Join(o.Run, "docker.sock"), filepath.Join(o.Run, "agent"),
		filepath.Join(o.Tmp, "tmux"), filepath.Join(o.State, "holder.sock"), filepath.Join(o.In, "person.sock"), o.abstract()} {
		_, err := net.Listen("unix", name)
		check(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	o.Port = l.Addr().(*net.TCPAddr).Port
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	check(err)
	check(unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0))
	o.PtyFD, err = unix.IoctlRetInt(master, unix.TIOCGPTPEER)
	check(err)
	o.Pty, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(o.PtyFD))
	check(err)
	number := uint64(42)
	o.Address = uint64(uintptr(unsafe.Pointer(&number)))
	o.Shared, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	check(err)
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0)
	if errno != 0 {
		panic(errno)
	}
	o.Queue = int(queue)
	o.Shm = "/dev/shm/tether-way-" + strconv.Itoa(o.Pid)
	check(os.WriteFile(o.Shm, []byte("x"), 0o600))
	check(json.NewEncoder(os.Stdout).Encode(o))
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = os.Remove(o.Shm)
	_, _ = unix.SysvShmCtl(o.Shared, unix.IPC_RMID, nil)
	_, _, _ = unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0)
	runtime.KeepAlive(&number)
	return 0
}

// way is a line of testdata/ways.txt.
type way struct {
	name, control string
	open          []string
}

func readWays(t *testing.T) []way {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/ways.txt"))(t)
	var all []way
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 3 && f[0] != "#" {
			w := way{f[0], f[1], strings.Split(f[2], ",")}
			if ways[w.name] == nil {
				t.Errorf("testdata/ways.txt names %s, for which there is no function", w.name)
			}
			all = append(all, w)
		}
	}
	if len(all) != len(ways) || len(all) < 40 {
		t.Errorf("testdata/ways.txt has %d ways, and there are %d functions; want the same, at least 40", len(all), len(ways))
	}
	return all
}

// TestWaysOut tries each way out of each sandbox, and without one.
func TestWaysOut(t *testing.T) {
	all := readWays(t)
	users := map[string]*syscall.Credential{"user": nil}
	if os.Geteuid() == 0 {
		users = map[string]*syscall.Credential{"root": nil, "user": {Uid: 65534, Gid: 65534, NoSetGroups: false}}
	}
	for user, as := range users {
		t.Run(user, func(t *testing.T) {
			for _, c := range []struct {
				name string
				kind sandbox.Kind
				none bool
			}{{"control", "", false}, {"none", sandbox.Wall, true}, {"shared", sandbox.Wall, false}, {"landlock", sandbox.Landlock, false}} {
				t.Run(c.name, func(t *testing.T) {
					tryWays(t, all, user, as, c.name, c.kind, c.none)
				})
			}
		})
	}
}

func tryWays(t *testing.T, all []way, user string, as *syscall.Credential, name string, k sandbox.Kind, noNetwork bool) {
	base, program := place(t, as)
	if k != "" {
		needs(t, k, program, as)
		if !sandbox.ClosesAbstractSockets() && !noNetwork {
			t.Skip("the kernel cannot close abstract sockets (Landlock before version 6)")
		}
	}
	o := makeOutside(t, filepath.Join(base, "files"), program, as)
	text, err := json.Marshal(o)
	must.Do(t, err)
	argv := []string{program, "ways", string(text), "shared"}
	if k == sandbox.Wall {
		argv[3] = "private"
	}
	want := map[string]bool{}
	for _, w := range all {
		possible := w.control == "both" || w.control == user
		if k != "" || possible {
			argv = append(argv, w.name)
			want[w.name] = k == "" || possible && slices.Contains(w.open, name)
		}
	}
	if k != "" {
		p := sandbox.Profile{Writable: []string{o.In}, Hidden: []string{o.State}, Home: o.Home, NoNetwork: noNetwork}
		if argv, err = sandbox.Wrap(k, p, program, argv); err != nil {
			t.Fatal(err)
		}
	}
	opened := must.Get(os.Open(o.Out))(t)
	defer opened.Close()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.ExtraFiles, c.Stderr = o.In, []*os.File{opened}, os.Stderr
	c.Env = append(os.Environ(), "HOME="+o.Home, "XDG_RUNTIME_DIR="+o.Run)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		way, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
		wanted, tried := want[way]
		if !tried {
			t.Errorf("unexpected line %q", line)
		} else if (said == "open") != wanted && (user != "root" || !wanted || k == "") { // root's rights are taken, which may close a way
			t.Errorf("%s as %s in %s: %s; want open %v", way, user, name, said, wanted)
		}
		delete(want, way)
	}
	if len(want) > 0 {
		t.Errorf("not tried: %v", want)
	}
}

// place makes a directory that belongs to the user, with this program in it.
func place(t *testing.T, as *syscall.Credential) (base, program string) {
	t.Helper()
	base, err := os.MkdirTemp("", "ways")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(base, "program")
	must.Do(t, os.Chmod(base, 0o755))
	if out, err := exec.Command("cp", self(t), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must.Do(t, os.Chmod(program, 0o755))
	own(t, as, base)
	return base, program
}

func own(t *testing.T, as *syscall.Credential, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if as == nil {
			return
		}
		must.Do(t, os.Chown(p, int(as.Uid), int(as.Gid)))
	}
}

// needs skips the test if the kind does not work for the user.
func needs(t *testing.T, k sandbox.Kind, program string, as *syscall.Credential) {
	t.Helper()
	dir := filepath.Dir(program)
	argv, err := sandbox.Wrap(k, sandbox.Profile{Readable: []string{dir}, Writable: []string{dir}, Home: dir}, program, []string{"true"})
	if err != nil {
		t.Skip(err)
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("%s does not work for this user: %v: %s", k, err, out)
	}
}

// makeOutside makes the targets of the ways.
func makeOutside(t *testing.T, dir, program string, as *syscall.Credential) outside {
	t.Helper()
	o := outside{In: filepath.Join(dir, "in"), Out: filepath.Join(dir, "out"), Home: filepath.Join(dir, "home"),
		Run: filepath.Join(dir, "run"), State: filepath.Join(dir, "state"), Tmp: filepath.Join(dir, "tmp")}
	must.Do(t, os.Mkdir(dir, 0o700))
	own(t, as, dir)
	for _, name := range []string{o.In + "/", o.Out + "/file", o.Out + "/spare", o.Out + "/full", o.Out + "/repo/.git/hooks/", o.Home + "/.bashrc", o.Home + "/.config/",
		o.Home + "/.ssh/id", o.Home + "/.aws/credentials", o.Home + "/.local/share/keyrings/login.keyring", o.Home + "/.mozilla/cookies",
		o.Run + "/", o.State + "/secret", o.Tmp + "/file"} {
		parent := filepath.Dir(name)
		must.Do(t, os.MkdirAll(parent, 0o700))
		for d := parent; d != dir; d = filepath.Dir(d) {
			own(t, as, d)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		must.Do(t, os.WriteFile(name, []byte("the person's"), 0o600))
		own(t, as, name)
	}
	if as != nil {
		name := filepath.Join(o.In, "setuid")
		if out, err := exec.Command("cp", "/usr/bin/id", name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		must.Do(t, os.Chmod(name, 0o755|os.ModeSetuid))
	}
	text := must.Get(json.Marshal(o))(t)
	target := exec.Command(program, "target", string(text))
	target.Dir, target.SysProcAttr, target.Stderr = o.Out, &syscall.SysProcAttr{Credential: as}, os.Stderr
	stdin := must.Get(target.StdinPipe())(t)
	stdout := must.Get(target.StdoutPipe())(t)
	must.Do(t, target.Start())
	t.Cleanup(func() {
		stdin.Close()
		_ = target.Wait()
	})
	line := must.Get(bufio.NewReader(stdout).ReadString('\n'))(t)
	must.Do(t, json.Unmarshal([]byte(line), &o))
	return o
}

// The page about security names each way that a sandbox leaves open, and no other.
func TestOpenWaysAreDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/SECURITY.md"))(t)
	_, section, found := strings.Cut(string(page), "## Confined agents\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/SECURITY.md has no section about confined agents")
	}
	_, fence, _ := strings.Cut(section, "A fence, `landlock`")
	for _, w := range readWays(t) {
		if w.control == "root" { // the lists are about ordinary users
			continue
		}
		if named, open := strings.Contains(fence, "`"+w.name+"`"), slices.Contains(w.open, "landlock"); named != open {
			t.Errorf("%s: docs/SECURITY.md names it %v, the fence leaves it open %v", w.name, named, open)
		}
	}
}

// wall returns a command for sh behind a wall, in the first directory of the profile.
func wall(t *testing.T, p sandbox.Profile, line string) *exec.Cmd {
	t.Helper()
	if err := sandbox.Works(sandbox.Wall, self(t)); err != nil {
		t.Skip(err)
	}
	if p.Home == "" {
		p.Home = t.TempDir()
	}
	argv := must.Get(sandbox.Wrap(sandbox.Wall, p, self(t), []string{"sh", "-c", line}))(t)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = p.Writable[0]
	return c
}

func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", c.Args[len(c.Args)-1], err)
	}
	return strings.TrimSpace(string(out))
}

func makeFiles(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Do(t, os.WriteFile(name, []byte("secret\n"), 0o600))
	}
}

// A hidden path stays hidden below a granted directory, and cannot be replaced there.
func TestHiddenBelowAGrant(t *testing.T) {
	home := t.TempDir()
	makeFiles(t, home+"/.aws/credentials", home+"/.netrc", home+"/state/key", home+"/seen")
	p := sandbox.Profile{Writable: []string{t.TempDir(), home}, Hidden: []string{home + "/state"}, Home: home}
	line := "{ cd " + home + "; cat seen; ls -A .aws; ls -A state; cat .netrc; mv .aws x; rm -rf state; rmdir state; echo x > .netrc; echo x > state/key; true; }"
	if got := output(t, wall(t, p, line+" 2>/dev/null")); got != "secret" {
		t.Errorf("it has read %q", got)
	}
	for _, name := range []string{".aws/credentials", ".netrc", "state/key"} {
		if data, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(data) != "secret\n" {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
}

// A hidden path is hidden also if it or a directory above it is a link, and a link to a
// path that is not shown needs no hiding.
func TestHiddenLinks(t *testing.T) {
	base := t.TempDir()
	home := base + "/home"
	makeFiles(t, home+"/dots/aws/x", home+"/dots/netrc", home+"/dots/config/gh/x", base+"/out/kube/x")
	for link, target := range map[string]string{
		".aws": "dots/aws", ".netrc": home + "/dots/netrc", ".config": home + "/dots/config", ".kube": base + "/out/kube", ".gnupg": "nowhere",
	} {
		must.Do(t, os.Symlink(target, filepath.Join(home, link)))
	}
	p := sandbox.Profile{Writable: []string{home}, Home: home}
	if got := output(t, wall(t, p, "ls -A .aws .config/gh dots/aws dots/config/gh; cat dots/netrc .netrc .kube/x 2>/dev/null; true")); strings.Contains(got, "secret") || strings.Contains(got, "x") {
		t.Errorf("it has read %q", got)
	}
}

// Secrets stay hidden in a home that is reached through a link, and if they are links
// themselves. They cannot be granted by their real name.
func TestSecretsByTheirRealNames(t *testing.T) {
	base := t.TempDir()
	makeFiles(t, base+"/disk/home/.aws/x", base+"/disk/home/keys/x")
	must.Do(t, errors.Join(os.Symlink("disk/home", base+"/home"), os.Symlink("keys", base+"/disk/home/.ssh")))
	p := sandbox.Profile{Writable: []string{base + "/disk/home"}, Home: base + "/home"}
	if got := output(t, wall(t, p, "cat .aws/x .ssh/x keys/x 2>/dev/null; true")); got != "" {
		t.Errorf("it has read %q", got)
	}
	for _, secret := range []string{base + "/disk/home/.aws", base + "/disk/home/keys"} {
		p.Writable = []string{secret}
		if _, err := sandbox.Wrap(sandbox.Wall, p, self(t), []string{"true"}); err == nil || !strings.Contains(err.Error(), "is always hidden") {
			t.Errorf("%s is granted: %v", secret, err)
		}
	}
}

// A directory above a hidden path cannot be renamed, so that the path is hidden for the
// next command, too.
func TestHiddenInARenamedDirectory(t *testing.T) {
	home := t.TempDir()
	makeFiles(t, home+"/.config/gh/hosts", home+"/.config/other", home+"/.local/share/keyrings/login")
	p := sandbox.Profile{Writable: []string{home}, Home: home}
	_ = wall(t, p, "mv .config seen; mv .local/share seen2; mv .local seen3; true").Run()
	got := output(t, wall(t, p, "cat seen*/gh/hosts seen*/share/keyrings/login seen*/keyrings/login 2>/dev/null; cat .config/other; echo new > .config/new; cat .config/new"))
	if got != "secret\nnew" {
		t.Errorf("it has read %q, want .config/other and .config/new", got)
	}
}

// A granted path that has become a link, as an agent in another terminal can make it, is
// not followed; nor is one where the wall mounts something.
func TestLinksIntoGrants(t *testing.T) {
	base := t.TempDir()
	makeFiles(t, base+"/out/file", base+"/home/.cargo/bin/tool", base+"/work/x")
	must.Do(t, os.Symlink(base+"/out", base+"/work/link"))
	p := sandbox.Profile{Writable: []string{base + "/work", base + "/work/link"}, Home: base + "/home"}
	out, err := wall(t, p, "true").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "too many levels of symbolic links") {
		t.Errorf("with a link as the grant: %v, %s", err, out)
	}
	// The agent's home is its own: it links a place of the wall's to a directory outside,
	// and to one that is granted.
	private := base + "/private/agent"
	first := wall(t, sandbox.Profile{Writable: []string{base + "/work"}, Home: base + "/home", Private: private}, "echo; cat >/dev/null")
	end := startAndWait(t, first)
	must.Do(t, errors.Join(os.RemoveAll(private+"/home/.cargo/bin"), os.Remove(private+"/home/.cargo"), os.Symlink(base+"/out", private+"/home/.cargo")))
	second := wall(t, sandbox.Profile{Writable: []string{base + "/work"}, Home: base + "/home", Private: private}, "cat "+base+"/out/file")
	if out, err := second.CombinedOutput(); err == nil {
		t.Errorf("through a link in its home it has read %s", out)
	} else if !strings.Contains(string(out), "path escapes from parent") {
		t.Errorf("with a link in its home: %v, %s", err, out)
	}
	_ = end()
}

// A toolchain or setting that the person keeps in a granted directory, behind a link, is
// shown; a link that an agent has put in its place is not followed. That holds in a
// directory that is granted now, and in one that an agent may be granted.
func TestLinksToGrants(t *testing.T) {
	base := t.TempDir()
	home := base + "/home"
	makeFiles(t, base+"/out/file", base+"/src/dots/tool", home+"/.cache/x")
	for link, target := range map[string]string{
		home + "/.gitconfig": "../src/dots/gitconfig", home + "/.editorconfig": base + "/src/dots/tool", home + "/.rustup": base + "/src/dots/dir",
		base + "/src/dots/gitconfig": "../../out/file", base + "/src/dots/dir": base + "/out", home + "/.cache/pip": "../../src/dots/dir",
	} {
		must.Do(t, os.Symlink(target, link))
	}
	line := "cd " + home + "; cat .editorconfig; cat .gitconfig .rustup/file .cache/pip/file 2>/dev/null; true"
	for name, p := range map[string]sandbox.Profile{
		"granted":              {Writable: []string{base + "/src/dots"}},
		"granted another time": {Writable: []string{t.TempDir()}, Roots: []string{base + "/src"}},
	} {
		p.Home = home
		if got := output(t, wall(t, p, line)); got != "secret" {
			t.Errorf("%s: it has read %q, want the file that is no link", name, got)
		}
	}
	// Only commands in the home directory itself could have made links there.
	must.Do(t, os.Symlink("home", base+"/link"))
	for _, name := range []string{home, base + "/link"} {
		p := sandbox.Profile{Writable: []string{t.TempDir()}, Roots: []string{home}, Home: name}
		if got := output(t, wall(t, p, "cat "+name+"/.editorconfig")); got != "secret" {
			t.Errorf("it has read %q through a link of the person's in %s", got, name)
		}
	}
}

// A socket that the person has in a granted directory is hidden, also if it was bound by
// a relative name and from another directory.
func TestSocketsOfRelativeNames(t *testing.T) {
	dir := t.TempDir()
	makeFiles(t, dir+"/sub/x")
	for _, bound := range []struct{ cwd, name string }{{dir, "app.sock"}, {dir, "sub/app.sock"}, {dir + "/sub", "../up.sock"}} {
		c := exec.Command("python3", "-c", "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint(flush=True)\nsys.stdin.read()", bound.name)
		c.Dir = bound.cwd
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip(err)
		}
		end := startAndWait(t, c)
		defer func() { _ = end() }()
	}
	got := output(t, wall(t, sandbox.Profile{Writable: []string{dir}}, "for f in app.sock sub/app.sock up.sock; do test -S $f && echo $f; done; true"))
	if got != "" {
		t.Errorf("it sees %q", got)
	}
}

// startAndWait starts a command and returns when it has printed something; end closes its
// input, and returns when it has ended.
func startAndWait(t *testing.T, c *exec.Cmd) (end func() error) {
	t.Helper()
	stdin := must.Get(c.StdinPipe())(t)
	stdout := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	must.Get(stdout.Read(make([]byte, 1)))(t)
	return func() error {
		stdin.Close()
		return c.Wait()
	}
}

// Terminals of an agent share /tmp and the home with nobody else. Both are removed with
// the last terminal.
func TestPrivateDirectory(t *testing.T) {
	base := t.TempDir()
	p := sandbox.Profile{Writable: []string{t.TempDir()}, Home: base + "/home", Private: base + "/state/agent"}
	first := wall(t, p, "echo shared > /tmp/file; echo home > ~/file; mkdir -p ~/kept/x; touch ~/kept/x/y; chmod 500 ~/kept/x ~/kept; echo; cat > /dev/null")
	first.Env = append(os.Environ(), "HOME="+p.Home)
	end := startAndWait(t, first)
	second := wall(t, p, "cat /tmp/file /var/tmp/file ~/file; stat -c %a /tmp")
	second.Env = first.Env
	if got := output(t, second); got != "shared\nshared\nhome\n1777" {
		t.Errorf("another terminal of the agent sees %q", got)
	}
	other := p
	other.Private = base + "/state/other"
	if got := output(t, wall(t, other, "ls /tmp/file ~/file 2>/dev/null || echo none")); got != "none" {
		t.Errorf("another agent sees %q", got)
	}
	check.OK(t, end())
	left, err := filepath.Glob(base + "/state/*")
	if want := []string{base + "/state/agent.lock", base + "/state/other.lock"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v", left, err)
	}
}

// Toolchains and hidden paths that the user cannot reach fail no wall: behind a file,
// behind links in a circle, in another user's directory. A hidden path in a directory of
// the user's own fails it, because the command could open the directory.
func TestPathsOutOfReach(t *testing.T) {
	var as *syscall.Credential
	if os.Geteuid() == 0 {
		as = &syscall.Credential{Uid: 12345, Gid: 12345} // not 65534, as which all others appear in a user namespace
	}
	base, program := place(t, as)
	needs(t, sandbox.Wall, program, as)
	home, in := base+"/home", base+"/in"
	makeFiles(t, home+"/go", in+"/closed/private/key", in+"/own/key")
	must.Do(t, errors.Join(os.Symlink(".nvm", home+"/.nvm"), os.Symlink(in+"/closed/private", home+"/.asdf")))
	own(t, as, home, in)
	hidden := []string{in + "/closed/private/key"}
	status := func() (string, error) {
		p := sandbox.Profile{Writable: []string{in}, Home: home, Hidden: hidden}
		argv := must.Get(sandbox.Wrap(sandbox.Wall, p, program, []string{"sh", "-c", "cat closed/private/key 2>/dev/null; echo ran"}))(t)
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.SysProcAttr = in, &syscall.SysProcAttr{Credential: as}
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if got, err := status(); err != nil || got != "ran" {
		t.Errorf("%q, %v", got, err)
	}
	if as == nil {
		return
	}
	// With a group that is not mapped, the helper cannot search the directory, and its
	// owner can open it.
	must.Do(t, errors.Join(os.Chmod(in+"/own", 0), os.Chown(in+"/own", int(as.Uid), 0)))
	hidden = append(hidden, in+"/own/key")
	if got, err := status(); err == nil || !strings.Contains(got, "hide "+in+"/own/key") {
		t.Errorf("the user's own directory: %q, %v", got, err)
	}
}

// Changes in a cache are seen by the command that makes them, and by nobody else. Where
// root has that, an ordinary user has it.
func TestCachesAreLayered(t *testing.T) {
	for _, as := range []*syscall.Credential{nil, {Uid: 65534, Gid: 65534}} {
		if as != nil && os.Geteuid() != 0 {
			break
		}
		base, program := place(t, as)
		needs(t, sandbox.Wall, program, as)
		made := base + "/home/.cache/go-build/made"
		makeFiles(t, made)
		for path := made; path != base; path = filepath.Dir(path) {
			own(t, as, path)
		}
		p := sandbox.Profile{Writable: []string{base}, Home: base + "/home", Private: base + "/state/agent"}
		argv := must.Get(sandbox.Wrap(sandbox.Wall, p, program, []string{"sh", "-c", "echo changed > " + made + "; mkdir " + made + ".d; cat " + made}))(t)
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.SysProcAttr = base, &syscall.SysProcAttr{Credential: as}
		got := output(t, c)
		if as == nil && strings.Contains(got, "Read-only") {
			t.Skip("no layers here: " + got)
		}
		if data, err := os.ReadFile(made); got != "changed" || string(data) != "secret\n" || err != nil {
			t.Errorf("%v: inside it is %q, outside %q, %v", as, got, data, err)
		}
		if _, err := os.Stat(p.Private); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: the layer is left: %v", as, err)
		}
	}
}

// Processes that a command leaves running end with it, however they were detached.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	c := wall(t, sandbox.Profile{Writable: []string{dir}}, "mkfifo hold; (setsid sh -c 'exec 3<>hold; sleep 1000' & ); (trap '' HUP TERM; sh -c 'exec 3<>hold; sleep 1000' &) ; true")
	_ = output(t, c)
	// The kernel has ended them before the helper ended, so no process has the pipe open.
	if fd, err := unix.Open(filepath.Join(dir, "hold"), unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		unix.Close(fd)
		t.Error("a process is left")
	} else if !errors.Is(err, unix.ENXIO) {
		t.Error(err)
	}
}

// Signals to the helper reach the command, and its end by a signal is seen outside.
func TestSignalsPass(t *testing.T) {
	c := wall(t, sandbox.Profile{Writable: []string{t.TempDir()}}, "trap 'exit 9' TERM; echo; while :; do sleep 0.01; done")
	stdout := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	must.Get(stdout.Read(make([]byte, 1)))(t)
	must.Do(t, c.Process.Signal(unix.SIGTERM))
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 9 {
		t.Errorf("after SIGTERM: %v", err)
	}
	c = wall(t, sandbox.Profile{Writable: []string{t.TempDir()}}, "kill -KILL $$")
	_ = c.Run()
	if s := c.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != unix.SIGKILL {
		t.Errorf("a command that was killed: %v", c.ProcessState)
	}
}

// Ordinary programs work behind a wall.
func TestOrdinaryWork(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, needs, line, want string }{
		{"git", "git", "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --format=%s", "one"},
		{"C", "gcc", `echo 'int main(){return 7;}' > a.c && gcc -o a a.c && ./a; echo $?`, "7"},
		{"Go", "go", "unset GOCACHE GOMODCACHE GOPATH; printf 'package main\\nfunc main() { println(6*7) }\\n' > x.go && go run x.go 2>&1", "42"}, // without imports: it compiles few packages
		{"Node", "node", `node -e 'require("child_process").exec("echo child",(e,o)=>process.stdout.write(o))'`, "child"},
		{"npm", "npm", `echo '{"scripts":{"t":"echo ran"}}' > package.json && npm run --silent t`, "ran"},
		{"python", "python3", `python3 -c 'import multiprocessing as m, tempfile; tempfile.mkdtemp(); q=m.Queue(); q.put(1); print(q.get())'`, "1"},
		{"gdb", "gdb", `echo 'int main(){return 0;}' > d.c && gcc -g -o d d.c && gdb -q -batch -ex 'break main' -ex run -ex 'print 6*7' ./d 2>/dev/null | grep -o '= 42'`, "= 42"},
		{"ps", "ps", `ps -p 1 -o args= | cut -c 1-19`, "tether confine init"},
		{"unix socket", "python3", `python3 -c 'import socket as s; a=s.socket(s.AF_UNIX); a.bind("x"); a.listen(); b=s.socket(s.AF_UNIX); b.connect("x"); print("ok")'`, "ok"},
		{"pty", "python3", `python3 -c 'import pty,os; m,s=pty.openpty(); print(os.ttyname(s))'`, "/dev/pts/0"},
		{"job control", "script", `script -qc 'bash -ic "sleep 9 & kill %1; tty"' /dev/null | tail -1 | tr -d '\r'`, "/dev/pts/0"},
		{"device", "sh", "echo x > /dev/null && head -c 3 /dev/urandom | wc -c && exec 3<>/dev/shm/x && rm /dev/shm/x", "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			got := output(t, wall(t, sandbox.Profile{Writable: []string{dir}, Home: home, Private: dir + "-private"}, c.line))
			if lines := strings.Split(got, "\n"); lines[len(lines)-1] != c.want {
				t.Errorf("%s\nprinted %q, want %q at the end", c.line, got, c.want)
			}
		})
	}
}

// A server behind a wall that shares the network is reached from outside, and one without
// it is not.
func TestServer(t *testing.T) {
	for _, none := range []bool{false, true} {
		p := sandbox.Profile{Writable: []string{t.TempDir()}, NoNetwork: none}
		c := wall(t, p, "exec "+self(t)+" serve")
		stdin := must.Get(c.StdinPipe())(t)
		stdout := must.Get(c.StdoutPipe())(t)
		must.Do(t, c.Start())
		address := must.Get(bufio.NewReader(stdout).ReadString('\n'))(t)
		if err := dial("tcp", strings.TrimSpace(address)); (err != nil) != none {
			t.Errorf("network none %v: %v", none, err)
		}
		stdin.Close()
		_ = c.Wait()
	}
}

// serve listens, and connects to itself, until its standard input ends.
func serve([]string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if err := dial("tcp", l.Addr().String()); err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	_, _ = os.Stdin.Read(make([]byte, 1))
	return 0
}
