package limits

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// requestTimeout is how long systemd may take for one request.
const requestTimeout = 5 * time.Second

// taken is a shell script that succeeds if the kernel has the bounds that canGroup asks
// for. A manager without the cgroup controllers, as in many containers, accepts the
// bounds without an error and does not apply them.
const taken = `d=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); read -r p <"$d/pids.max" && read -r m <"$d/memory.max" && [ "$p $m" = "4000 1073741824" ]`

// canGroup runs a command with bounds once: systemd-run must work, not only be installed.
var canGroup = sync.OnceValue(func() bool {
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC || runtimeDir() == "" {
		return false
	}
	return run("systemd-run", "--user", "--scope", "--quiet", "--collect", "--description=tether", "--property=TasksMax=4000", "--property=MemoryMax=1G", "--", "/bin/sh", "-c", taken) == nil
})

// runtimeDir returns XDG_RUNTIME_DIR, or "" if the user's systemd does not listen there.
func runtimeDir() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if _, err := os.Stat(filepath.Join(dir, "systemd/private")); dir == "" || err != nil {
		return ""
	}
	return dir
}

func run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %.200s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// made holds the groups whose bounds are set, by name.
var made = struct {
	sync.Mutex
	all map[string]Group
}{all: map[string]Group{}}

func join(g Group, argv, env []string) ([]string, []string, error) {
	if !canGroup() {
		return nil, nil, ErrUnsupported
	}
	made.Lock()
	defer made.Unlock()
	if made.all[g.Name] != g {
		if err := run("systemctl", g.properties()...); err != nil {
			return nil, nil, err
		}
		made.all[g.Name] = g
	}
	return g.wrap(argv), withRuntimeDir(env, runtimeDir()), nil
}

// properties returns the arguments of systemctl that set the group's bounds until the
// machine restarts.
func (g Group) properties() []string {
	args := []string{"--user", "set-property", "--runtime", g.slice()}
	if g.Processes > 0 {
		args = append(args, fmt.Sprintf("TasksMax=%d", g.Processes))
	}
	if g.Memory > 0 {
		args = append(args, fmt.Sprintf("MemoryMax=%d", g.Memory), "MemorySwapMax=0")
	}
	return args
}

// wrap returns the argv that runs argv in the group. With --scope, systemd-run registers
// its own process and then becomes the command. The description keeps the words of the
// command out of the journal.
func (g Group) wrap(argv []string) []string {
	return append([]string{"systemd-run", "--user", "--scope", "--quiet", "--collect", "--description=tether", "--slice=" + g.slice(), "--"}, argv...)
}

// withRuntimeDir returns env with XDG_RUNTIME_DIR, by which systemd-run finds the user's
// systemd. nil stands for the environment of this process, which has the variable.
func withRuntimeDir(env []string, dir string) []string {
	if env == nil || slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "XDG_RUNTIME_DIR=") }) {
		return env
	}
	return append(slices.Clone(env), "XDG_RUNTIME_DIR="+dir)
}

// slice returns systemd's name for the group. It contains a hash of the group's name,
// because an agent's name may contain any character and systemd takes a dash for a level
// of its hierarchy.
func (g Group) slice() string {
	sum := sha256.Sum256([]byte(g.Name))
	return fmt.Sprintf("tether-agent_%x.slice", sum[:6])
}
