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
	"tether/internal/version"
	"tether/platform/pty"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/shellint"
)

// configCheck is the name of the check whose reason may show what the file says.
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
		c.Reason = path + " is in order"
	}
	if text := strangeText(); text != "" && c.Result == checkOK {
		c.Result, c.Reason, c.Fix = checkWarn, c.Reason+"; but the environment has "+text, "correct their names, or unset them"
	}
	return []check{c}
}

// checkDirectories looks whether they are this user's alone.
func checkDirectories(_ context.Context, p *patient) []check {
	c := check{Name: "directories", Result: checkOK, Reason: "only you can use them", Doc: "docs/PLATFORMS.md"}
	if foreign := p.dirs.Check(); foreign != nil {
		c.Result, c.Reason = checkFail, foreign.Error()
		return []check{c}
	}
	for _, dir := range []string{p.dirs.State, p.dirs.Runtime} {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // the daemon makes it
		}
		if err := secret.Dir(dir); err != nil { // it is there, so this only looks
			c.Result, c.Reason, c.Fix = checkFail, err.Error(), "make it yours alone, or set TETHER_HOME to a directory that is"
		}
	}
	return []check{c}
}

// lowDisk is how much room there should be, in bytes: the logs' bound, several times.
const lowDisk = 64 << 20

// checkDisk looks for room for what is kept.
func checkDisk(_ context.Context, p *patient) []check {
	c := check{Name: "disk", Result: checkOK}
	free, err := p.free(existing(p.dirs.State))
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case free < lowDisk:
		c.Result, c.Reason = checkWarn, fmt.Sprintf("%d MiB are free for %s", free>>20, p.dirs.State)
		c.Fix = "make room: what is new cannot be kept there otherwise"
	default:
		c.Reason = fmt.Sprintf("%d MiB are free", free>>20)
	}
	return []check{c}
}

// existing is the directory, or the nearest above it that is there.
func existing(dir string) string {
	for _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Lstat(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// checkWriting writes something where the daemon keeps what it knows and where its socket is, and takes it away again. Room and permissions
// do not tell: a disk may be mounted for reading only, and a quota or a server may say no.
func checkWriting(_ context.Context, p *patient) []check {
	c := check{Name: "writing", Result: checkOK, Reason: "the state directory can be written", Doc: "docs/RELIABILITY.md"}
	for _, dir := range []string{p.dirs.State, p.dirs.Runtime} {
		err := tryWriting(dir)
		if err == nil {
			continue
		}
		why := err.Error()
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			why = e.Err.Error() // without the name of a file that nobody else has seen
		}
		c.Result, c.Reason = checkFail, dir+" cannot be written: "+why
		c.Fix = "make room on its disk, or make it writable for you; until then terminals run, but pairings, tokens and logs are not kept"
	}
	return []check{c}
}

// triedBytes is how much is written: more than file systems keep beside a file's name.
const triedBytes = 8 << 10

// tryWriting writes a file as the daemon does, or makes a directory where there is none yet.
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

// lowFiles is how many open files fifty terminals and their doors need.
const lowFiles = 1024

func checkFiles(_ context.Context, p *patient) []check {
	c := check{Name: "open files", Result: checkOK}
	n, err := p.files()
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case n < lowFiles:
		c.Result, c.Reason, c.Fix = checkWarn, fmt.Sprintf("a program may open %d", n), "raise the limit: ulimit -n, or LimitNOFILE= of a service"
	default:
		c.Reason = fmt.Sprintf("a program may open %d", n)
	}
	return []check{c}
}

// checkPTY runs this program on a pseudo-terminal.
func checkPTY(ctx context.Context, p *patient) []check {
	c := check{Name: "pseudo-terminal", Result: checkFail, Fix: "terminals cannot start: look at the limits of this session or container", Doc: "docs/PLATFORMS.md"}
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
		c.Reason = "the output of a program on it does not arrive"
		return []check{c}
	}
	return []check{{Name: c.Name, Result: checkOK, Reason: "programs run on it: " + system, Doc: c.Doc}}
}

// checkRoot says what it means that the daemon, or what would start one, is root.
func checkRoot(_ context.Context, p *patient) []check {
	c := check{Name: "root", Result: checkWarn, Fix: "run it as yourself, unless this is a container", Doc: "docs/SECURITY.md"}
	switch {
	case p.status.Root != nil:
		c.Reason = rootText(*p.status.Root)
		if name := container(); name != "" {
			c.Result, c.Fix, c.Reason = checkOK, "", "this is a container ("+name+"): "+c.Reason
		}
	case p.down == nil || !p.root():
		return []check{{Name: c.Name, Result: checkOK, Reason: "neither the daemon nor this command runs as root", Doc: c.Doc}}
	default:
		c.Reason = "this command runs as root, and a daemon that it starts would"
		if name := container(); name != "" {
			c.Result, c.Fix, c.Reason = checkOK, "", "this is a container ("+name+"), in which the daemon may run as root"
		}
	}
	return []check{c}
}

// checkDaemon asks whether it runs and is of this version.
func checkDaemon(ctx context.Context, p *patient) []check {
	c := check{Name: "daemon", Result: checkOK, Doc: "docs/RELIABILITY.md"}
	switch {
	case errors.Is(p.down, local.ErrNotRunning):
		c.Result, c.Reason, c.Fix = checkWarn, "it is not running", "tether service install has it start at login; tether run starts it, too"
		if locked := agent.LockHeld(ctx, p.dirs); locked != nil {
			c.Result, c.Reason, c.Fix = checkFail, "it is not running, and cannot start: "+locked.Error(), locked.Hint()
		}
	case p.down != nil:
		c.Result, c.Reason, c.Fix = checkFail, "it does not answer: "+p.down.Error(), stuckFix(p.dirs)
		if foreign := p.dirs.Check(); foreign != nil {
			c.Reason, c.Fix = foreign.Error(), ""
		}
	case p.status.Version != version.Text():
		c.Result, c.Reason = checkWarn, fmt.Sprintf("it is version %s, this command %s", p.status.Version, version.Text())
		c.Fix = "tether daemon --replace --background; its terminals go on"
	default:
		c.Reason = fmt.Sprintf("it runs, process %d, version %s", p.status.Pid, p.status.Version)
	}
	return []check{c}
}

// checkSockets looks for what was left behind by daemons and terminals that were killed.
func checkSockets(_ context.Context, p *patient) []check {
	c := check{Name: "sockets", Result: checkOK, Doc: "docs/RELIABILITY.md"}
	path := agent.SocketPath(p.dirs)
	info, missing := os.Lstat(path)
	dead, err := agent.LeftDead(p.dirs)
	alive := 0
	if errors.Is(p.down, local.ErrNotRunning) {
		ids, _ := agent.LeftRunning(p.dirs) // what cannot be looked at is no news
		alive = len(ids)
	}
	switch {
	case missing == nil && info.IsDir():
		c.Result, c.Reason, c.Fix = checkFail, path+" is a directory, and in the way of the socket", "move it away"
	case err != nil:
		c.Result, c.Reason, c.Fix = checkFail, err.Error(), "make the directory yours alone"
	case alive > 0:
		c.Result, c.Reason, c.Fix = checkWarn, terminals(alive, "runs", "run")+" without a daemon", leftFix(alive)
	case dead > 0:
		c.Result, c.Reason, c.Fix = checkWarn, fmt.Sprintf("%d sockets were left behind by terminals that were killed", dead), "tether daemon --replace --background removes them"
	case errors.Is(p.down, local.ErrNotRunning) && missing == nil:
		c.Result, c.Reason, c.Fix = checkWarn, "a daemon that was killed has left its socket", "tether daemon --background replaces it"
	default:
		c.Reason = "none was left behind"
	}
	return []check{c}
}

// checkDegraded hands on what the daemon complains of.
func checkDegraded(_ context.Context, p *patient) []check {
	var all []check
	for _, d := range p.status.Degraded {
		all = append(all, check{Name: d.Cause, Result: checkWarn, Reason: d.Text, Fix: "tether logs says more", Doc: "docs/RELIABILITY.md"})
	}
	return all
}

// checkService asks the service manager.
func checkService(ctx context.Context, p *patient) []check {
	c := check{Name: "service", Result: checkOK, Doc: "docs/PLATFORMS.md"}
	st, err := p.service(ctx)
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case !st.Installed:
		c.Result, c.Reason, c.Fix = checkWarn, "none is installed: after a login the daemon starts when a command needs it", "tether service install"
	case !st.Enabled:
		c.Result, c.Reason, c.Fix = checkWarn, st.Path+" does not start by itself", "tether service install"
	case len(st.Advice) > 0:
		c.Result, c.Reason, c.Fix = checkWarn, "it starts at your login", strings.Join(st.Advice, "; ")
	default:
		c.Reason = "it starts by itself: " + st.State
	}
	return []check{c}
}

// checkShell says whether the person's shell will report its commands.
func checkShell(context.Context, *patient) []check {
	c := check{Name: "shell", Result: checkOK, Doc: "docs/SHELL-INTEGRATION.md"}
	path := shell.Login()
	plan, err := shellint.Inject([]string{path}, shellint.InjectOptions{Nonce: "examination", Dir: os.TempDir(), Getenv: os.Getenv, Login: true})
	switch {
	case err != nil:
		c.Result, c.Reason = checkSkip, err.Error()
	case !plan.Detect:
		c.Result, c.Reason, c.Fix = checkWarn, path+" will not report its commands", "agents see what it prints all the same; bash, zsh, fish and PowerShell report theirs"
	default:
		c.Reason = path + " reports its commands"
	}
	return []check{c}
}
