//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// Two users of one machine, of the same group, who need not exist.
const (
	ownerUID    = 61001
	strangerUID = 61002
	usersGID    = 61000
)

// doorsVar has the doors that a process of TestTwoUsers tries, in JSON. It prints a line
// for each that is open.
const doorsVar = "TETHER_TEST_DOORS"

// door is a way to another user's daemon or terminals.
type door struct {
	How  string // one of tries
	Path string // or URL, a process's number, or the words of a command
}

// table returns the attempts of testdata/users.txt, and those of them that succeed for
// the owner.
func (h *household) table(places map[string]string) (all, owners []door) {
	h.t.Helper()
	var words []string
	for name, place := range places {
		words = append(words, name, place)
	}
	names := strings.NewReplacer(words...)
	for _, f := range testkit.Table(h.t, "users.txt", 3, 120) {
		if tries[f[1]] == nil {
			h.t.Fatalf("%q is no row", f)
		}
		places := []string{names.Replace(f[2])}
		if strings.HasPrefix(places[0], "/") {
			var err error
			if places, err = filepath.Glob(places[0]); err != nil || f[0] == "owner" && len(places) == 0 {
				h.t.Errorf("%q: there is none, %v", f, err)
			}
		}
		for _, place := range places {
			all = append(all, door{f[1], place})
			if f[0] == "owner" {
				owners = append(owners, door{f[1], place})
			}
		}
	}
	return all, owners
}

// No other user of the machine gets through a door, whichever they try.
func TestTwoUsers(t *testing.T) {
	if text := os.Getenv(doorsVar); text != "" {
		tryDoors(text)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can act as two users")
	}
	t.Parallel() // it waits most of the time
	h := newHousehold(t)
	h.must("tether", "pair", "--token-file", h.secretFile, h.host)
	h.must("tether", "config", "edit")
	h.must("tether", "token", "create", "--person", "x")
	h.must("tether", "run", "--detach", "--private", "--name", "mine", "--", "sleep", "1000")
	var status localapi.Status
	h.json(&status, "status")
	if status.Pid == 0 || status.TCP == "" || status.Holders.Alive != 1 {
		t.Fatalf("%+v", status)
	}
	var list localapi.TerminalList
	h.json(&list, "ls")
	doors := append(h.doorsOfFiles(), h.doorsOfProcesses(status.Pid, list.Terminals[0].Pid)...)
	places := map[string]string{"HOME": h.home, "DAEMON": strconv.Itoa(status.Pid), "CHILD": strconv.Itoa(list.Terminals[0].Pid), "TCP": "http://" + status.TCP}
	for _, d := range doors {
		if strings.HasPrefix(d.Path, "/dev/") {
			places["TTY"] = d.Path
		}
		if d.How == "kill" {
			places["HOLDER"] = d.Path // the last is the child's parent
		}
	}
	tabled, owners := h.table(places)
	if open := h.open(ownerUID, owners); len(open) != len(owners) {
		for _, d := range owners {
			if !slices.Contains(open, d) {
				t.Errorf("the owner cannot %s %s: the row proves nothing", d.How, d.Path)
			}
		}
	}
	found := map[string]bool{}

	// The owner's success shows that each door works.
	var dials []door
	for _, d := range h.open(ownerUID, doors) {
		if d.How == "dial" {
			dials = append(dials, d)
		}
		found[d.How] = true
	}
	for _, how := range []string{"read", "write", "list", "make", "dial", "kill"} {
		if !found[how] {
			t.Errorf("the owner's try to %s succeeds nowhere: the test proves nothing", how)
		}
	}
	if len(dials) != 3 {
		t.Errorf("the owner is answered at %v, want the daemon's socket by its two names, and a holder's", dials)
	}
	if open := h.open(strangerUID, append(doors, tabled...)); len(open) > 0 {
		t.Errorf("open to another user: %v", open)
	}
	// The permissions of directories are not all that there is: sockets ask who comes.
	h.openUp()
	if open := h.open(strangerUID, dials); len(open) > 0 {
		t.Errorf("behind directories that are open, another user is answered at %v", open)
	}
	var after localapi.Status
	if h.json(&after, "status"); after.Pid != status.Pid || after.Holders.Alive != 1 {
		t.Errorf("afterwards: %+v", after)
	}
	for _, args := range [][]string{{"status"}, {"daemon"}} {
		out, err := h.run(strangerUID, "tether", args...)
		if err == nil || strings.Contains(out, list.Terminals[0].ID) || strings.Contains(out, "sleep") {
			t.Errorf("another user's tether %s: %v\n%s", args, err, out)
		}
	}
}

// household is where both live. All directories above tether's own are open to both.
type household struct {
	t                           *testing.T
	dir, home, host, secretFile string
}

func newHousehold(t *testing.T) *household {
	dir := must.Get(os.MkdirTemp("/tmp", "tu"))(t)
	h := &household{t: t, dir: dir, home: filepath.Join(dir, "home"), secretFile: filepath.Join(dir, "token")}
	t.Cleanup(func() {
		_, _ = h.run(ownerUID, "tether", "stop")
		check.OK(t, os.RemoveAll(dir))
	})
	self := must.Get(os.Executable())(t)
	host := &testHost{}
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.Mkdir(h.home, 0o755), os.Chown(h.home, ownerUID, usersGID), copyProgram(self, filepath.Join(dir, "tether")),
		copyProgram(self, filepath.Join(dir, "probe")), os.WriteFile(h.secretFile, []byte("s3cret-canary"), 0o400), os.Chown(h.secretFile, ownerUID, usersGID),
		host.start("s3cret-canary"),
	} {
		must.Do(t, err)
	}
	t.Cleanup(host.stop)
	h.host = "ws://" + host.address
	return h
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o755)
	}
	if closing := out.Close(); err == nil {
		err = closing
	}
	return err
}

// run runs a program as one of them.
func (h *household) run(uid uint32, program string, args ...string) (string, error) {
	return h.runWith(uid, nil, program, args...)
}

func (h *household) runWith(uid uint32, env []string, program string, args ...string) (string, error) {
	c := exec.Command(filepath.Join(h.dir, program), args...)
	c.Dir = "/"
	c.Env = append([]string{"TETHER_HOME=" + h.home, "HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "EDITOR=true", "SHELL=/bin/sh", "TETHER_LOCAL_LISTEN=127.0.0.1:0",
		raceVar + "=" + quickRace}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: usersGID}}
	c.WaitDelay = testkit.Patience
	out, err := c.CombinedOutput()
	return string(out), err
}

// must runs it as the owner.
func (h *household) must(program string, args ...string) {
	h.t.Helper()
	if out, err := h.run(ownerUID, program, args...); err != nil {
		h.t.Fatalf("%s %s: %v\n%s", program, args, err, out)
	}
}

// json reads the output of the owner's command.
func (h *household) json(v any, args ...string) {
	h.t.Helper()
	out, err := h.run(ownerUID, "tether", append(args, "--json")...)
	if err == nil {
		err = json.Unmarshal([]byte(out), v)
	}
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", args, err, out)
	}
}

// doorsOfFiles are all files, directories and sockets that are below the home.
func (h *household) doorsOfFiles() (all []door) {
	files := 0
	err := filepath.WalkDir(h.home, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == h.home:
			return err
		case d.IsDir():
			all = append(all, door{"list", path}, door{"make", path})
		case d.Type() == fs.ModeSocket:
			all = append(all, door{"dial", path})
		case d.Type().IsRegular():
			files++
			all = append(all, door{"read", path}, door{"write", path})
		}
		return nil
	})
	if err != nil || files < 4 {
		h.t.Fatalf("%v, %v", all, err)
	}
	return all
}

// doorsOfProcesses are the system's views of the daemon, of its processes and of the
// terminal's own device.
func (h *household) doorsOfProcesses(daemon, terminal int) (all []door) {
	list := must.Get(proc.List())(h.t)
	pids := []int{daemon, terminal}
	for _, p := range list {
		if p.Pid == terminal {
			pids = append(pids, p.Parent) // its holder
		}
	}
	for _, pid := range pids {
		all = append(all, door{"kill", strconv.Itoa(pid)})
		for _, name := range []string{"environ", "mem", "maps", "auxv"} {
			if path := fmt.Sprintf("/proc/%d/%s", pid, name); exists(path) {
				all = append(all, door{"read", path})
			}
		}
		if fds := fmt.Sprintf("/proc/%d/fd", pid); exists(fds) {
			all = append(all, door{"list", fds})
		}
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line), "s3cret-canary") {
			h.t.Errorf("the command line of process %d has the token: %q, %v", pid, line, err) // anybody can read it
		}
	}
	if tty, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", terminal)); err == nil {
		all = append(all, door{"read", tty}, door{"write", tty})
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// openUp makes the directories and sockets of the home open to all.
func (h *household) openUp() {
	must.Do(h.t, filepath.WalkDir(h.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type() == fs.ModeSocket) {
			err = os.Chmod(path, 0o777)
		}
		return err
	}))
}

// open returns the doors that are open to a user.
func (h *household) open(uid uint32, doors []door) (open []door) {
	h.t.Helper()
	text := must.Get(json.Marshal(doors))(h.t)
	out, err := h.runWith(uid, []string{doorsVar + "=" + string(text)}, "probe", "-test.run=^TestTwoUsers$")
	if err != nil || !strings.Contains(out, fmt.Sprintf("tried %d\n", len(doors))) {
		h.t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if how, path, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "open ")), " "); ok && strings.HasPrefix(line, "open ") {
			open = append(open, door{how, path})
		}
	}
	return open
}

// tryDoors tries all of them and prints which are open.
func tryDoors(text string) {
	var doors []door
	if err := json.Unmarshal([]byte(text), &doors); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var commands sync.WaitGroup
	for _, d := range doors {
		try := func() {
			if tries[d.How](d.Path) {
				fmt.Println("open", d.How, d.Path)
			}
		}
		if d.How == "tether" { // waits for a daemon that does not answer
			commands.Go(try)
			continue
		}
		try()
	}
	commands.Wait()
	fmt.Println("tried", len(doors))
}

// tries are by door.How. None changes anything that was there.
var tries = map[string]func(path string) bool{
	"read":  func(path string) bool { return opens(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY) },
	"write": func(path string) bool { return opens(path, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY) },
	"list": func(path string) bool {
		_, err := os.ReadDir(path)
		return err == nil
	},
	"make": func(path string) bool {
		name := filepath.Join(path, "made-by-test")
		err := os.WriteFile(name, nil, 0o600)
		os.Remove(name)
		return err == nil
	},
	"dial": answered,
	"get": func(url string) bool {
		c := http.Client{Timeout: testkit.Patience}
		resp, err := c.Get(url)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode < http.StatusBadRequest
	},
	"kill": func(pid string) bool {
		n, err := strconv.Atoi(pid)
		return err == nil && syscall.Kill(n, 0) == nil
	},
	"stat": func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	},
	"chmod": func(path string) bool { return os.Chmod(path, modeOf(path)) == nil },
	"chown": func(path string) bool { return os.Lchown(path, -1, usersGID) == nil },
	"link": func(path string) bool {
		name := path + "-made-by-test"
		err := os.Link(path, name)
		os.Remove(name)
		return err == nil
	},
	"rename": func(path string) bool {
		if os.Rename(path, path+"-made-by-test") != nil {
			return false
		}
		return os.Rename(path+"-made-by-test", path) == nil
	},
	"truncate": func(path string) bool {
		i, err := os.Stat(path)
		return err == nil && os.Truncate(path, i.Size()) == nil
	},
	"touch": func(path string) bool { return os.Chtimes(path, time.Now(), time.Now()) == nil },
	"lock": func(path string) bool {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		return err == nil || errors.Is(err, syscall.EWOULDBLOCK)
	},
	"chdir": func(path string) bool { return os.Chdir(path) == nil },
	"readlink": func(path string) bool {
		_, err := os.Readlink(path)
		return err == nil
	},
	"tether": func(words string) bool {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		return exec.CommandContext(ctx, filepath.Join(filepath.Dir(os.Args[0]), "tether"), strings.Fields(words)...).Run() == nil
	},
}

// modeOf is the mode of a file, or one that changes nothing much where that cannot be
// looked at.
func modeOf(path string) fs.FileMode {
	if i, err := os.Stat(path); err == nil {
		return i.Mode().Perm()
	}
	return 0o600
}

func opens(path string, how int) bool {
	f, err := os.OpenFile(path, how, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// answered reports whether a client that connects to a socket and sends the first
// messages of docs/HOLDER.md or docs/LOCAL-API.md gets an answer.
func answered(path string) bool {
	c, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	words := "TETHER-H\x00\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00" // of a holder's client
	if filepath.Base(path) == "daemon.sock" {
		words = "GET /v1/status HTTP/1.1\r\nHost: tether\r\nConnection: close\r\n\r\n"
	}
	_, _ = io.WriteString(c, words)
	n, err := c.Read(make([]byte, 1))
	return n > 0 || errors.Is(err, os.ErrDeadlineExceeded)
}

// A directory of another user is named, with its owner and the remedy.
func TestForeignHome(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can act as two users")
	}
	h := newHousehold(t)
	const cure = ": unset TETHER_HOME, or set it to a directory of your own"
	for home, want := range map[string]string{
		h.home:                       h.home + " belongs to user 61001" + cure,
		filepath.Join(h.home, "sub"): h.home + " belongs to user 61001" + cure,
	} {
		for _, args := range [][]string{{"ls"}, {"run", "--private", "--", "true"}, {"status"}, {"doctor"}} {
			out, err := h.runWith(strangerUID, []string{"TETHER_HOME=" + home}, "tether", args...)
			if err == nil || !strings.Contains(out, want) || strings.Contains(out, "dial unix") {
				t.Errorf("%q with %s: %v\n%s; want %q", args, home, err, out, want)
			}
		}
	}
	must.Do(t, os.Chmod(h.home, 0o500))
	defer os.Chmod(h.home, 0o700)
	if out, err := h.run(ownerUID, "tether", "run", "--private", "--", "true"); err == nil || !strings.Contains(out, "you have no access to "+h.home+" (mode 0500): chmod u+rwx "+h.home) {
		t.Errorf("a home that cannot be written: %v\n%s", err, out)
	}
}
