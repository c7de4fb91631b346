package adopt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tether/platform/ipc"
	"tether/platform/proc"
)

// Bounds of a listing.
const (
	answerTime = 10 * time.Second // for the server of one pane; a busy machine takes seconds
	listTime   = 5 * time.Second  // for all servers; one that is stopped delays a listing by it
	maxSockets = 64
	maxPanes   = 1000
	maxText    = 256 // bytes of a text of a pane
)

// tmuxPane is a pane with what the reader needs besides.
type tmuxPane struct {
	Pane
	session  string // id of a session that it is in
	attached int    // clients of the session
}

// tmuxDir is where servers of this user have their sockets (tmux(1), -L).
func tmuxDir(o Options) string {
	dir := o.getenv("TMUX_TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	return filepath.Join(dir, fmt.Sprintf("tmux-%d", os.Getuid()))
}

// tmuxSocket returns the path of a target's socket.
func tmuxSocket(o Options, server string) string {
	if filepath.IsAbs(server) {
		return server
	}
	if server == "" {
		server = "default"
	}
	return filepath.Join(tmuxDir(o), filepath.Base(server))
}

// listTmux returns the panes of all servers with a socket in tmuxDir.
func listTmux(ctx context.Context, o Options) (all []Pane, faults []error) {
	program, err := o.lookPath("tmux")
	if err != nil {
		return nil, nil // nobody has one running
	}
	entries, err := os.ReadDir(tmuxDir(o))
	if err != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	entries = entries[:min(len(entries), maxSockets)]
	panes, errs := make([][]tmuxPane, len(entries)), make([]error, len(entries))
	var told sync.WaitGroup
	for i, e := range entries {
		if path := tmuxSocket(o, e.Name()); ipc.CheckOwn(path) == nil {
			told.Go(func() {
				panes[i], errs[i] = listServer(ctx, program, path, "")
				describe(panes[i])
			})
		}
	}
	told.Wait()
	for i, e := range entries {
		if errs[i] != nil && !errors.Is(errs[i], errNoServer) {
			faults = append(faults, fmt.Errorf("tmux server %s: %w", e.Name(), errs[i]))
		}
		for _, p := range panes[i] {
			if e.Name() != "default" {
				p.Target.Server = e.Name()
			}
			all = append(all, p.Pane)
		}
	}
	return all[:min(len(all), maxPanes)], faults
}

// findTmux returns one pane.
func findTmux(ctx context.Context, o Options, t Target) (Pane, error) {
	if !IsTmuxPane(t.Pane) {
		return Pane{}, &RefusedError{t, "a pane of tmux is named by its number, as in tmux:%3"}
	}
	program, err := o.lookPath("tmux")
	if err != nil {
		return Pane{}, &RefusedError{t, "there is no program tmux in PATH"}
	}
	path := tmuxSocket(o, t.Server)
	if err := ipc.CheckOwn(path); errors.Is(err, os.ErrNotExist) {
		return Pane{}, &UnknownError{t}
	} else if err != nil {
		return Pane{}, &RefusedError{t, err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	panes, err := listServer(ctx, program, path, "") // tmux before 3.2 has no filter
	if errors.Is(err, errNoServer) {
		return Pane{}, &UnknownError{t}
	}
	if err != nil {
		return Pane{}, fmt.Errorf("tmux server of %s: %w", t, err)
	}
	i := slices.IndexFunc(panes, func(p tmuxPane) bool { return p.Target.Pane == t.Pane })
	if i < 0 {
		return Pane{}, &UnknownError{t}
	}
	describe(panes[i : i+1])
	p := panes[i].Pane
	p.Target = t
	if p.Why != "" {
		return Pane{}, &RefusedError{t, p.Why}
	}
	return p, nil
}

var errNoServer = errors.New("no server listens there")

// listFields are the formats of a listing that have neither blanks nor controls.
const listFields = "#{pane_id} #{pane_pid} #{pid} v#{version} #{pane_width} #{pane_height} #{session_id} #{session_attached} 0#{pane_dead} 0#{destroy-unattached}"

// onlyPane is a filter for list-panes, since tmux 3.2.
func onlyPane(pane string) string { return "#{==:#{pane_id}," + pane + "}" }

// listServer returns the panes of one server, each once, in the order of their numbers,
// or only the one that is given.
func listServer(ctx context.Context, program, socket, only string) ([]tmuxPane, error) {
	// A title or a directory may hold anything. Only this listing knows its separator.
	sep := rand.Text()
	args := []string{"-u", "-S", socket, "list-panes", "-a", "-F", sep + listFields + sep + "#{pane_current_command}" + sep + "#{pane_current_path}" + sep + "#{pane_title}" + sep}
	if only != "" {
		args = append(args, "-f", onlyPane(only))
	}
	out, err := run(ctx, nil, program, args...)
	if err != nil {
		for _, none := range []string{"no server running", "error connecting", "no sessions"} {
			if strings.Contains(err.Error(), none) {
				return nil, errNoServer
			}
		}
		return nil, err
	}
	var panes []tmuxPane
	for row := range strings.SplitSeq(string(out), sep+"\n") {
		fields := strings.Split(strings.TrimPrefix(row, sep), sep)
		if len(fields) != 4 || len(panes) == maxPanes {
			continue
		}
		p, ok := parsePane(fields, socket)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(panes, func(o tmuxPane) bool { return o.Target.Pane == p.Target.Pane }); i < 0 {
			panes = append(panes, p)
		} else if p.attached > panes[i].attached { // a window may be in several sessions
			panes[i] = p
		}
	}
	slices.SortFunc(panes, func(a, b tmuxPane) int { return number(a) - number(b) })
	return panes, nil
}

func number(p tmuxPane) int {
	n, _ := strconv.Atoi(p.Target.Pane[1:])
	return n
}

func parsePane(fields []string, socket string) (tmuxPane, bool) {
	f := strings.Fields(fields[0])
	if len(f) != 10 || !IsTmuxPane(f[0]) || !strings.HasPrefix(f[6], "$") || strings.ContainsAny(f[6], "'\\") {
		return tmuxPane{}, false
	}
	p := tmuxPane{session: f[6]}
	p.Target, p.Socket = Target{Program: "tmux", Pane: f[0]}, socket
	p.Command, p.Title = printable(fields[1], maxText), printable(fields[3], maxText)
	p.Dir = directory(fields[2])
	p.Pid, _ = strconv.Atoi(f[1])
	p.Server.Pid, _ = strconv.Atoi(f[2])
	cols, _ := strconv.Atoi(f[4])
	rows, _ := strconv.Atoi(f[5])
	p.Size = sizeOf(cols, rows)
	p.attached, _ = strconv.Atoi(f[7])
	p.Exact = exact(strings.TrimPrefix(f[3], "v"))
	switch {
	case strings.Trim(f[8], "0") != "":
		p.Why = "its program has ended"
	case p.attached == 0 && f[9] != "0" && f[9] != "0off" && f[9] != "00":
		p.Why = "its session ends when its last client leaves (destroy-unattached), and nobody is attached: attach to it first"
	case cols > maxSide || rows > maxSide:
		p.Why = fmt.Sprintf("it has %d columns and %d rows, at most %d can be shown: make it smaller", cols, rows, maxSide)
	}
	return p, p.Pid > 0 && p.Server.Pid > 0
}

// exact reports whether this version of tmux gives every byte: since 3.2, where a client
// that lags is told what it misses (pause-after) and has no size (ignore-size).
func exact(version string) bool {
	version = strings.TrimPrefix(version, "next-")
	if strings.HasPrefix(version, "openbsd-") || version == "master" {
		return true
	}
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor) // a letter may follow
	return n == 2 && (major > 3 || major == 3 && minor >= 2)
}

// describe adds what the system tells: the server's start, and the whole command line.
func describe(panes []tmuxPane) {
	starts := map[int]uint64{}
	for i := range panes {
		p := &panes[i]
		start, seen := starts[p.Server.Pid]
		if !seen {
			if info, err := proc.Lookup(p.Server.Pid); err == nil {
				start = info.Start
			}
			starts[p.Server.Pid] = start
		}
		p.Server.Start = start
		if front, ok := proc.Front(p.Pid); ok && len(front.Argv) > 0 {
			p.Command = printable(strings.Join(front.Argv, " "), maxText)
		}
	}
}
