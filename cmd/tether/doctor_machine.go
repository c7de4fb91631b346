package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tether/agent"
	"tether/agent/local"
	"tether/cmd/tether/internal/display"
	"tether/internal/version"
	"tether/platform/pty"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/shellint"
)

// configCheck is the name of the check whose reason may quote the configuration file.
const configCheck = "configuration"

// checkConfig reads the configuration file.
func checkConfig(context.Context, *patient) []check {
	c := check{Name: configCheck, Result: checkOK, Doc: "docs/CONFIG.md"}
	path, _, err := loadConfig()
	switch _, missing := os.Stat(path); {
	case err != nil:
		c.Result, c.Reason, c.Fix = checkFail, err.Error(), "tether config edit, and tether config check"
	case errors.Is(missing, fs.ErrNotExist):
		c.Reason = "no configuration file; using defaults"
	default:
		c.Reason = path + " is valid"
	}
	if text := strangeText(); text != "" && c.Result == checkOK {
		c.Result, c.Reason, c.Fix = checkWarn, c.Reason+"; the environment has "+text, "correct their names, or unset them"
	}
	return []check{c}
}

// checkDirectories checks whether only this user can access the directories.
func checkDirectories(_ context.Context, p *patient) []check {
	c := check{Name: "directories", Result: checkOK, Reason: "accessible only to you", Doc: "docs/PLATFORMS.md"}
	if foreign := p.dirs.Check(); foreign != nil {
		c.Result, c.Reason = checkFail, foreign.Error()
		return []check{c}
	}
	for _, dir := range []string{p.dirs.State, p.dirs.Runtime} {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // the daemon makes it
		}
		if err := secret.Dir(dir); err != nil { // it exists, so this only checks it
			c.Result, c.Reason, c.Fix = checkFail, err.Error(), "make it accessible only to you, or set TETHER_HOME to such a directory"
		}
	}
	return []check{c}
}

// lowDisk is the free space below which doctor warns, in bytes: several times the logs' bound.
const lowDisk = 64 << 20

// checkDisk checks the free space for the state directory.
func checkDisk(_ context.Context, p *patient) []check {
	c := check{Name: "disk", Result: checkOK}
	free, err := p.free(existing(p.dirs.State))
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case free < lowDisk:
		c.Result, c.Reason = checkWarn, fmt.Sprintf("only %d MiB are free for %s", free>>20, p.dirs.State)
		c.Fix = "free some space, or logs and pairings cannot be saved"
	default:
		c.Reason = fmt.Sprintf("%d MiB are free", free>>20)
	}
	return []check{c}
}

// existing is the directory, or its nearest parent that exists.
func existing(dir string) string {
	for _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Lstat(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// checkWriting writes a test file to the state directory and to the runtime directory, and removes it. Free space and permissions are not
// enough: a disk may be mounted read-only, and a quota or a file server may refuse.
func checkWriting(_ context.Context, p *patient) []check {
	c := check{Name: "writing", Result: checkOK, Reason: "the state directory is writable", Doc: "docs/RELIABILITY.md"}
	for _, dir := range []string{p.dirs.State, p.dirs.Runtime} {
		err := tryWriting(dir)
		if err == nil {
			continue
		}
		why := err.Error()
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			why = e.Err.Error() // without the name of the test file
		}
		c.Result, c.Reason = checkFail, dir+" is not writable: "+why
		c.Fix = "free space on its disk, or make it writable for you; until then terminals run, but pairings, tokens and logs are not saved"
	}
	return []check{c}
}

// triedBytes is the size of the test file: more than file systems store inline with a file's name.
const triedBytes = 8 << 10

// tryWriting writes a file as the daemon does. If the directory does not exist, it creates a directory in the nearest parent instead.
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

// lowFiles is how many open files fifty terminals and their connections need.
const lowFiles = 1024

func checkFiles(_ context.Context, p *patient) []check {
	c := check{Name: "open files", Result: checkOK}
	n, err := p.files()
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case n < lowFiles:
		c.Result, c.Reason, c.Fix = checkWarn, fmt.Sprintf("the limit is %d per process", n), "raise the limit: ulimit -n, or LimitNOFILE= of a service"
	default:
		c.Reason = fmt.Sprintf("the limit is %d per process", n)
	}
	return []check{c}
}

// checkPTY runs this program on a pseudo-terminal.
func checkPTY(ctx context.Context, p *patient) []check {
	c := check{Name: "pseudo-terminal", Result: checkFail, Fix: "terminals cannot start: check the limits of this session or container", Doc: "docs/PLATFORMS.md"}
	system, err := p.console()
	if err != nil {
		c.Reason, c.Fix = err.Error(), "terminals cannot start: update the system"
		return []check{c}
	}
	self, err := os.Executable()
	if err != nil {
		c.Reason = err.Error()
		return []check{c}
	}
	child, err := pty.Start(pty.Command{Path: self, Args: []string{"tether", "version"}, Env: os.Environ()})
	if err != nil {
		c.Reason = err.Error()
		return []check{c}
	}
	defer context.AfterFunc(ctx, func() { _ = child.Kill(context.WithoutCancel(ctx), time.Second) })()
	printed, _ := io.ReadAll(io.LimitReader(child, 4<<10)) // ends with an error on some systems
	child.Wait()
	child.Close()
	if !strings.Contains(string(printed), version.Text()) {
		c.Reason = "the output of a test program does not arrive"
		return []check{c}
	}
	return []check{{Name: c.Name, Result: checkOK, Reason: "works: " + system, Doc: c.Doc}}
}

// checkRoot warns of a daemon that runs as root, or of a command that would start one.
func checkRoot(_ context.Context, p *patient) []check {
	c := check{Name: "root", Result: checkWarn, Fix: "run it as yourself, unless this is a container", Doc: "docs/SECURITY.md"}
	switch {
	case p.status.Root != nil:
		c.Reason = display.Root(*p.status.Root)
		if name := container(); name != "" {
			c.Result, c.Fix, c.Reason = checkOK, "", "in a container ("+name+"): "+c.Reason
		}
	case p.down == nil || !p.root():
		return []check{{Name: c.Name, Result: checkOK, Reason: "neither the daemon nor this command runs as root", Doc: c.Doc}}
	default:
		c.Reason = "this command runs as root, so a daemon that it starts would too"
		if name := container(); name != "" {
			c.Result, c.Fix, c.Reason = checkOK, "", "in a container ("+name+"), where the daemon may run as root"
		}
	}
	return []check{c}
}

// checkDaemon checks whether the daemon runs and has this version.
func checkDaemon(ctx context.Context, p *patient) []check {
	c := check{Name: "daemon", Result: checkOK, Doc: "docs/RELIABILITY.md"}
	switch {
	case errors.Is(p.down, local.ErrNotRunning):
		c.Result, c.Reason, c.Fix = checkWarn, "not running", "start it at login with: tether service install; tether run starts it too"
		if locked := agent.LockHeld(ctx, p.dirs); locked != nil {
			c.Result, c.Reason, c.Fix = checkFail, "not running, and it cannot start: "+locked.Error(), locked.Hint()
		}
	case p.down != nil:
		c.Result, c.Reason, c.Fix = checkFail, "does not answer: "+p.down.Error(), stuckFix(p.dirs)
		if foreign := p.dirs.Check(); foreign != nil {
			c.Reason, c.Fix = foreign.Error(), ""
		}
	case p.status.Version != version.Text():
		c.Result, c.Reason = checkWarn, fmt.Sprintf("the daemon has version %s, this command %s", p.status.Version, version.Text())
		c.Fix = "tether daemon --replace --background; its terminals keep running"
	default:
		c.Reason = fmt.Sprintf("running, process %d, version %s", p.status.Pid, p.status.Version)
	}
	return []check{c}
}

// checkSockets looks for stale sockets of killed daemons and terminals, and for terminals that run without a daemon.
func checkSockets(_ context.Context, p *patient) []check {
	c := check{Name: "sockets", Result: checkOK, Doc: "docs/RELIABILITY.md"}
	path := agent.SocketPath(p.dirs)
	info, missing := os.Lstat(path)
	dead, err := agent.LeftDead(p.dirs)
	alive := 0
	if errors.Is(p.down, local.ErrNotRunning) {
		ids, _ := agent.LeftRunning(p.dirs) // no terminals are reported if this fails
		alive = len(ids)
	}
	switch {
	case missing == nil && info.IsDir():
		c.Result, c.Reason, c.Fix = checkFail, path+" is a directory and blocks the socket", "move it away"
	case err != nil:
		c.Result, c.Reason, c.Fix = checkFail, err.Error(), "make the directory accessible only to you"
	case alive > 0:
		c.Result, c.Reason, c.Fix = checkWarn, display.Terminals(alive, "is running", "are running")+" without a daemon", display.LeftRemedy(alive)
	case dead > 0:
		c.Result, c.Reason, c.Fix = checkWarn, fmt.Sprintf("%d stale sockets of killed terminals", dead), "tether daemon --replace --background removes them"
	case errors.Is(p.down, local.ErrNotRunning) && missing == nil:
		c.Result, c.Reason, c.Fix = checkWarn, "a stale socket of a killed daemon", "tether daemon --background replaces it"
	default:
		c.Reason = "no stale sockets"
	}
	return []check{c}
}

// checkDegraded passes on the daemon's own warnings.
func checkDegraded(_ context.Context, p *patient) []check {
	var all []check
	for _, d := range p.status.Degraded {
		all = append(all, check{Name: d.Cause, Result: checkWarn, Reason: d.Text, Fix: "see tether logs", Doc: "docs/RELIABILITY.md"})
	}
	return all
}

// checkService asks the service manager whether the daemon starts automatically.
func checkService(ctx context.Context, p *patient) []check {
	c := check{Name: "service", Result: checkOK, Doc: "docs/PLATFORMS.md"}
	st, err := p.service(ctx)
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case !st.Installed:
		c.Result, c.Reason, c.Fix = checkWarn, "not installed: the daemon starts when a command needs it, not at login", "tether service install"
	case !st.Enabled:
		c.Result, c.Reason, c.Fix = checkWarn, st.Path+" is not enabled, so the daemon does not start at login", "tether service install"
	case len(st.Advice) > 0:
		c.Result, c.Reason, c.Fix = checkWarn, "the daemon starts at login", strings.Join(st.Advice, "; ")
	default:
		c.Reason = "the daemon starts automatically: " + st.State
	}
	return []check{c}
}

// checkShell checks whether the person's shell reports its commands.
func checkShell(context.Context, *patient) []check {
	c := check{Name: "shell", Result: checkOK, Doc: "docs/SHELL-INTEGRATION.md"}
	path := shell.Login()
	plan, err := shellint.Inject([]string{path}, shellint.InjectOptions{Nonce: "examination", Dir: os.TempDir(), Getenv: os.Getenv, Login: true})
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case !plan.Detect:
		c.Result, c.Reason, c.Fix = checkWarn, path+" does not report its commands", "agents still see its output; use bash, zsh, fish or PowerShell to get commands reported"
	default:
		c.Reason = path + " reports its commands"
	}
	return []check{c}
}
