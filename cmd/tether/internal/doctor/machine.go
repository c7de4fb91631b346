package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/internal/version"
	"tether/platform/pty"
	"tether/platform/sandbox"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/shellint"
)

// ConfigCheck is the name of the check whose reason may quote the configuration file.
const ConfigCheck = "configuration"

// checkConfig reads the configuration file.
func checkConfig(_ context.Context, m *machine) []Check {
	c := Check{Name: ConfigCheck, Result: OK, Doc: "docs/CONFIG.md"}
	path, err := m.Config()
	switch _, missing := os.Stat(path); {
	case err != nil:
		c.Result, c.Reason, c.Fix = Fail, err.Error(), "tether config edit, and tether config check"
	case errors.Is(missing, fs.ErrNotExist):
		c.Reason = "no configuration file; using defaults"
	default:
		c.Reason = path + " is valid"
	}
	if m.Unknown != "" && c.Result == OK {
		c.Result, c.Reason, c.Fix = Warn, c.Reason+"; the environment has "+m.Unknown, "correct their names, or unset them"
	}
	return []Check{c}
}

// checkDirectories checks whether only this user can access the directories.
func checkDirectories(_ context.Context, m *machine) []Check {
	c := Check{Name: "directories", Result: OK, Reason: "accessible only to you", Doc: "docs/PLATFORMS.md"}
	if foreign := m.Dirs.Check(); foreign != nil {
		c.Result, c.Reason = Fail, foreign.Error()
		return []Check{c}
	}
	for _, dir := range []string{m.Dirs.State, m.Dirs.Runtime} {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // the daemon will create it
		}
		if err := secret.Dir(dir); err != nil { // it exists, so this only checks it
			c.Result, c.Reason, c.Fix = Fail, err.Error(), "make it accessible only to you, or set TETHER_HOME to such a directory"
		}
	}
	return []Check{c}
}

// lowDisk is the free space below which doctor warns, in bytes. It is several times the
// logs' bound.
const lowDisk = 64 << 20

// checkDisk checks the free space for the state directory.
func checkDisk(_ context.Context, m *machine) []Check {
	c := Check{Name: "disk", Result: OK}
	free, err := m.free(existing(m.Dirs.State))
	switch {
	case err != nil:
		c.Result, c.Reason = Skip, err.Error()
	case free < lowDisk:
		c.Result, c.Reason = Warn, fmt.Sprintf("only %d MiB are free for %s", free>>20, m.Dirs.State)
		c.Fix = "free some space, or logs and pairings cannot be saved"
	default:
		c.Reason = fmt.Sprintf("%d MiB are free", free>>20)
	}
	return []Check{c}
}

// existing returns the directory, or its nearest parent that exists.
func existing(dir string) string {
	for _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Lstat(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// checkWriting writes a test file to the state directory and to the runtime directory,
// and removes it. Free space and permissions are not enough: a disk may be mounted
// read-only, and a quota or a file server may refuse.
func checkWriting(_ context.Context, m *machine) []Check {
	c := Check{Name: "writing", Result: OK, Reason: "the state directory is writable", Doc: "docs/RELIABILITY.md"}
	for _, dir := range []string{m.Dirs.State, m.Dirs.Runtime} {
		err := tryWriting(dir)
		if err == nil {
			continue
		}
		why := err.Error()
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			why = e.Err.Error() // without the name of the test file
		}
		c.Result, c.Reason = Fail, dir+" is not writable: "+why
		c.Fix = "free space on its disk, or make it writable for you; until then terminals run, but pairings, tokens and logs are not saved"
	}
	return []Check{c}
}

// triedBytes is the size of the test file, in bytes: more than file systems store
// together with a file's name.
const triedBytes = 8 << 10

// tryWriting writes a file as the daemon does. If the directory does not exist, it
// creates a directory in the nearest parent instead.
func tryWriting(dir string) error {
	if above := existing(dir); above != dir {
		made, err := os.MkdirTemp(above, ".tether-doctor-")
		if err != nil {
			return err
		}
		return os.Remove(made)
	}
	path := filepath.Join(dir, "doctor-"+rand.Text())
	if err := secret.WriteFile(path, make([]byte, triedBytes)); err != nil {
		return err
	}
	return os.Remove(path)
}

// lowFiles is the limit of open files below which doctor warns: fifty terminals and their
// connections need that many.
const lowFiles = 1024

func checkFiles(_ context.Context, m *machine) []Check {
	c := Check{Name: "open files", Result: OK}
	n, err := m.files()
	switch {
	case err != nil:
		c.Result, c.Reason = Skip, err.Error()
	case n < lowFiles:
		c.Result, c.Reason, c.Fix = Warn, fmt.Sprintf("the limit is %d per process", n), "raise the limit: ulimit -n, or LimitNOFILE= of a service"
	default:
		c.Reason = fmt.Sprintf("the limit is %d per process", n)
	}
	return []Check{c}
}

// checkPTY runs this program on a pseudo-terminal and checks its output.
func checkPTY(ctx context.Context, m *machine) []Check {
	c := Check{Name: "pseudo-terminal", Result: Fail, Fix: "terminals cannot start: check the limits of this session or container", Doc: "docs/PLATFORMS.md"}
	system, err := m.console()
	if err != nil {
		c.Reason, c.Fix = err.Error(), "terminals cannot start: update the system"
		return []Check{c}
	}
	self, err := os.Executable()
	if err != nil {
		c.Reason = err.Error()
		return []Check{c}
	}
	child, err := pty.Start(pty.Command{Path: self, Args: []string{"tether", "version"}, Env: os.Environ()})
	if err != nil {
		c.Reason = err.Error()
		return []Check{c}
	}
	defer context.AfterFunc(ctx, func() { _ = child.Kill(context.WithoutCancel(ctx), time.Second) })()
	printed, _ := io.ReadAll(io.LimitReader(child, 4<<10)) // at the end, some systems report an error
	child.Wait()
	child.Close()
	if !strings.Contains(string(printed), version.Text()) {
		c.Reason = "the output of a test program does not arrive"
		return []Check{c}
	}
	return []Check{{Name: c.Name, Result: OK, Reason: "works: " + system, Doc: c.Doc}}
}

// checkRoot warns if the daemon runs as root, or if this command would start such a
// daemon. In a container, root is fine.
func checkRoot(_ context.Context, m *machine) []Check {
	c := Check{Name: "root", Result: Warn, Fix: "run it as yourself, unless this is a container", Doc: "docs/SECURITY.md"}
	switch {
	case m.status.Root != nil:
		c.Reason = display.Root(*m.status.Root)
		if name := m.Container; name != "" {
			c.Result, c.Fix, c.Reason = OK, "", "in a container ("+name+"): "+c.Reason
		}
	case m.down == nil || !m.root():
		return []Check{{Name: c.Name, Result: OK, Reason: "neither the daemon nor this command runs as root", Doc: c.Doc}}
	default:
		c.Reason = "this command runs as root, so a daemon that it starts would too"
		if name := m.Container; name != "" {
			c.Result, c.Fix, c.Reason = OK, "", "in a container ("+name+"), where the daemon may run as root"
		}
	}
	return []Check{c}
}

// checkDaemon checks whether the daemon runs and has this version.
func checkDaemon(ctx context.Context, m *machine) []Check {
	c := Check{Name: "daemon", Result: OK, Doc: "docs/RELIABILITY.md"}
	switch {
	case errors.Is(m.down, localclient.ErrNotRunning):
		c.Result, c.Reason, c.Fix = Warn, "not running", "tether run starts it, and other commands that need it"
		if _, err := m.service(ctx); err == nil {
			c.Fix += "; tether service install starts it at login"
		}
		if locked := agent.LockHeld(ctx, m.Dirs); locked != nil {
			c.Result, c.Reason, c.Fix = Fail, "not running, and it cannot start: "+locked.Error(), locked.Hint()
		}
	case m.down != nil:
		c.Result, c.Reason, c.Fix = Fail, "does not answer: "+m.down.Error(), StuckFix(m.Dirs)
		if foreign := m.Dirs.Check(); foreign != nil {
			c.Reason, c.Fix = foreign.Error(), ""
		}
	case m.status.Version != version.Text():
		c.Result, c.Reason = Warn, fmt.Sprintf("the daemon has version %s, this command %s", m.status.Version, version.Text())
		c.Fix = "tether daemon --replace --background; its terminals keep running"
	default:
		c.Reason = fmt.Sprintf("running, process %d, version %s", m.status.Pid, m.status.Version)
	}
	return []Check{c}
}

// checkSockets looks for stale sockets of killed daemons and terminals, and for terminals
// that run without a daemon.
func checkSockets(_ context.Context, m *machine) []Check {
	c := Check{Name: "sockets", Result: OK, Doc: "docs/RELIABILITY.md"}
	path := agent.SocketPath(m.Dirs)
	info, missing := os.Lstat(path)
	dead, err := agent.LeftDead(m.Dirs)
	alive := 0
	if errors.Is(m.down, localclient.ErrNotRunning) {
		ids, _ := agent.LeftRunning(m.Dirs) // if this fails, the check reports no terminals
		alive = len(ids)
	}
	switch {
	case missing == nil && info.IsDir():
		c.Result, c.Reason, c.Fix = Fail, path+" is a directory and blocks the socket", "move it away"
	case err != nil:
		c.Result, c.Reason, c.Fix = Fail, err.Error(), "make the directory accessible only to you"
	case alive > 0:
		c.Result, c.Reason, c.Fix = Warn, display.Terminals(alive, "is running", "are running")+" without a daemon", display.LeftRemedy(alive)
	case dead > 0:
		c.Result, c.Reason, c.Fix = Warn, fmt.Sprintf("%d stale sockets of killed terminals", dead), "tether daemon --replace --background removes them"
	case errors.Is(m.down, localclient.ErrNotRunning) && missing == nil:
		c.Result, c.Reason, c.Fix = Warn, "a stale socket of a killed daemon", "tether daemon --background replaces it"
	default:
		c.Reason = "no stale sockets"
	}
	return []Check{c}
}

// checkDegraded reports the daemon's own warnings.
func checkDegraded(_ context.Context, m *machine) []Check {
	var all []Check
	for _, d := range m.status.Degraded {
		fix := "see tether logs"
		if strings.HasPrefix(d.Cause, "notify ") {
			fix = "see tether notify ls"
		}
		all = append(all, Check{Name: d.Cause, Result: Warn, Reason: d.Text, Fix: fix, Doc: "docs/RELIABILITY.md"})
	}
	return all
}

// checkHistory checks what is kept of terminals' runs. What prevents that is among the
// daemon's own warnings.
func checkHistory(_ context.Context, m *machine) []Check {
	h := m.status.History
	if h == nil || slices.ContainsFunc(m.status.Degraded, func(d localapi.Degraded) bool { return d.Cause == "history" }) {
		return nil
	}
	c := Check{Name: "history", Result: OK, Doc: "docs/RUNS.md"}
	size := display.Size(h.Bytes)
	switch {
	case !h.On:
		c.Reason = "off: what terminals print is not kept ([history] keep is " + h.Keep + ")"
	case h.RoundMs > 0:
		c.Result, c.Reason = Warn, fmt.Sprintf("%s; what was printed is safe on the disk only after %.1f s", size, float64(h.RoundMs)/1000)
		c.Fix = "look at what else uses the disk of " + m.Dirs.State
	case h.Bytes > h.MaxBytes:
		c.Result, c.Reason = Warn, fmt.Sprintf("%s, more than %s: of terminals that run nothing is removed", size, display.Size(h.MaxBytes))
		c.Fix = "tether forget, or a larger max_bytes in [history]"
	default:
		c.Reason = fmt.Sprintf("%s of %s", size, display.Size(h.MaxBytes))
	}
	return []Check{c}
}

// checkService asks the service manager whether the daemon starts automatically.
func checkService(ctx context.Context, m *machine) []Check {
	c := Check{Name: "service", Result: OK, Doc: "docs/PLATFORMS.md"}
	st, err := m.service(ctx)
	switch {
	case err != nil:
		c.Result, c.Reason = Skip, err.Error()
	case !st.Installed:
		c.Result, c.Reason, c.Fix = Warn, "not installed: the daemon starts when a command needs it, not at login", "tether service install"
	case !st.Enabled:
		c.Result, c.Reason, c.Fix = Warn, st.Path+" is not enabled, so the daemon does not start at login", "tether service install"
	case len(st.Advice) > 0:
		c.Result, c.Reason, c.Fix = Warn, "the daemon starts at login", strings.Join(st.Advice, "; ")
	default:
		c.Reason = "the daemon starts automatically: " + st.State
	}
	return []Check{c}
}

// checkShell checks whether the person's shell reports its commands.
func checkShell(context.Context, *machine) []Check {
	c := Check{Name: "shell", Result: OK, Doc: "docs/SHELL-INTEGRATION.md"}
	path := shell.Login()
	plan, err := shellint.Inject([]string{path}, shellint.InjectOptions{Nonce: "Examination", Dir: os.TempDir(), Getenv: os.Getenv, Login: true})
	switch {
	case err != nil:
		c.Result, c.Reason = Skip, err.Error()
	case !plan.Detect:
		c.Result, c.Reason, c.Fix = Warn, path+" does not report its commands", "agents still see its output; use bash, zsh, fish or PowerShell to get commands reported"
	default:
		c.Reason = path + " reports its commands"
	}
	return []Check{c}
}

// checkSandbox tries the ways to confine agents' commands.
func checkSandbox(context.Context, *machine) []Check {
	c := Check{Name: "sandbox", Result: OK, Doc: "docs/SECURITY.md"}
	self, err := os.Executable()
	if err != nil {
		c.Result, c.Reason = Skip, err.Error()
		return []Check{c}
	}
	best, err := sandbox.Best(self)
	switch {
	case err != nil:
		c.Result, c.Reason = Skip, err.Error()
	case best == sandbox.Wall:
		c.Reason = display.Sandbox(localapi.SandboxStatus{Kind: string(best), Wall: true, Abstract: !sandbox.ClosesAbstractSockets()})
	default:
		c.Reason = display.Sandbox(localapi.SandboxStatus{Kind: string(best)})
		if why := sandbox.Works(sandbox.Wall, self); why != nil {
			c.Result, c.Fix = Warn, "to get wall instead, allow user namespaces: "+strings.TrimPrefix(why.Error(), sandbox.ErrUnsupported.Error()+": ")
		}
	}
	return []Check{c}
}
