//go:build linux || darwin

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openFiles is the name of the limit that Go raises.
const openFiles = "nofile"

func ownLimits() Limits {
	l := Limits{Umask: new(Umask()), Soft: map[string]int64{}}
	if nice, err := niceValue(); err == nil {
		l.Nice = &nice
	}
	for name, resource := range resources {
		var r syscall.Rlimit
		if syscall.Getrlimit(resource, &r) != nil {
			continue
		}
		l.Soft[name] = fromLimit(r.Cur)
		if name != openFiles || r.Cur == r.Max { // Go raises to one less than the hard limit
			continue
		}
		n, err := shellFiles()
		if l.Soft[name] = n; err != nil {
			delete(l.Soft, name)
		}
	}
	return l
}

// shellFiles asks a shell for its limit of open files, which is that of this process
// before Go raised it: programs that Go starts get that.
func shellFiles() (int64, error) {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "/bin/sh", "-c", "ulimit -n")
	c.Env = []string{}
	out, err := c.Output()
	if err != nil {
		return 0, err
	}
	if out = bytes.TrimSpace(out); string(out) == "unlimited" {
		return NoLimit, nil
	}
	return strconv.ParseInt(string(out), 10, 64)
}

func fromLimit(n uint64) int64 {
	if n >= unix.RLIM_INFINITY || int64(n) < 0 {
		return NoLimit
	}
	return int64(n)
}

func toLimit(n int64) uint64 {
	if n == NoLimit {
		return unix.RLIM_INFINITY
	}
	return uint64(n)
}

// Apply sets the values, the nice value on Linux only for the calling thread. It returns
// in words what it could not set. A soft limit never gets above the hard limit.
func (l Limits) Apply() (faults []string) {
	if l.Umask != nil {
		unix.Umask(*l.Umask)
	}
	if l.Nice != nil {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, *l.Nice); err != nil {
			faults = append(faults, fmt.Sprintf("the nice value cannot be %d: %v", *l.Nice, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Soft)) {
		if err := setSoft(resources[name], l.Soft[name]); err != nil {
			faults = append(faults, fmt.Sprintf("the limit %s %v", name, err))
		}
	}
	return faults
}

func setSoft(resource int, limit int64) error {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(resource, &r); err != nil {
		return fmt.Errorf("is not known: %w", err)
	}
	r.Cur = min(toLimit(limit), r.Max)
	if err := syscall.Setrlimit(resource, &r); err != nil {
		return fmt.Errorf("cannot be %d: %w", limit, err)
	}
	if r.Cur < toLimit(limit) {
		return fmt.Errorf("is %d, the daemon's hard limit", fromLimit(r.Cur))
	}
	return nil
}

// limitedReport is becomeLimited's descriptor for what it could not do.
const limitedReport = 3

// StartLimited does what syscall.ForkExec does, but the program has the values of l. It
// starts this program, which sets them and then becomes the other one: this process and
// its other children are not affected. faults are what could not be set, in words.
func StartLimited(l Limits, path string, argv []string, attr *syscall.ProcAttr) (pid int, faults string, err error) {
	if l.IsZero() {
		pid, err = syscall.ForkExec(path, argv, attr)
		return pid, "", err
	}
	self, err := selfPath()
	if err != nil {
		return 0, "", fmt.Errorf("find this program: %w", err)
	}
	report, w, err := os.Pipe()
	if err != nil {
		return 0, "", err
	}
	defer report.Close()
	with := *attr
	with.Files = append(slices.Clip(attr.Files), w.Fd())
	pid, err = syscall.ForkExec(self, append([]string{os.Args[0], LimitsVerb, l.String(), path}, argv...), &with)
	w.Close()
	if err != nil {
		return 0, "", err
	}
	text, err := readReport(report)
	if err == nil {
		return pid, text, nil
	}
	for {
		if _, waited := syscall.Wait4(pid, nil, 0, nil); !errors.Is(waited, syscall.EINTR) {
			return 0, "", err
		}
	}
}

func becomeLimited(args []string) int {
	const least = 3 // the values, the path and the program's own name
	if len(args) < least {
		return statusLimited
	}
	l, err := ParseLimits(args[0])
	if err != nil {
		return statusLimited
	}
	unix.CloseOnExec(limitedReport)
	report := os.NewFile(limitedReport, "report")
	env := os.Environ()
	runtime.LockOSThread() // the nice value is the thread's
	_, _ = report.WriteString(strings.Join(l.Apply(), "; "))
	err = syscall.Exec(args[1], args[2:], env)
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		_, _ = fmt.Fprintf(report, "\x00%d", int(n))
	}
	return statusLimited
}

// readReport reads what becomeLimited reports, until it has become the other program:
// faults in words and, as the byte 0 and a number, the error because of which it has not.
func readReport(r *os.File) (faults string, err error) {
	const most = 4 << 10
	var b bytes.Buffer
	if _, err := b.ReadFrom(io.LimitReader(r, most)); err != nil {
		return "", err
	}
	words, number, failed := bytes.Cut(b.Bytes(), []byte{0})
	if !failed {
		return string(words), nil
	}
	n, err := strconv.Atoi(string(number))
	if err != nil {
		return "", fmt.Errorf("report of a failed start: %w", err)
	}
	return "", syscall.Errno(n)
}
