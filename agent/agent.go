package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/term"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/secret"
	"tether/platform/shell"
)

// Config says how to run a daemon. Dirs is required.
type Config struct {
	Dirs    dirs.Dirs
	Version string // of this program, shown to hosts and in status
	// AllowRoot lets it run as root. Otherwise it refuses: every terminal, and
	// what a local program starts through it, would be root's.
	AllowRoot bool
	// Settings is what the person configured; nil means the defaults.
	Settings *config.Config
	// LogLevel, if not "", comes before that of Settings.
	LogLevel string
	// Ready, if not nil, is called once when requests are answered.
	Ready func()
	// Terminals, where not zero, comes before Settings. For tests.
	Terminals term.Options
}

// SocketPath is where the daemon with these directories listens.
func SocketPath(d dirs.Dirs) string { return filepath.Join(d.Runtime, "daemon.sock") }

// LogPath is where it logs.
func LogPath(d dirs.Dirs) string { return filepath.Join(d.State, "daemon.log") }

// ErrRoot is returned by Run for root without AllowRoot.
var ErrRoot = errors.New("the daemon does not run as root")

// RunningError is returned by Run when another daemon serves the same
// directories.
type RunningError struct{ Pid int }

func (e *RunningError) Error() string {
	if e.Pid == 0 {
		return "a daemon runs already"
	}
	return fmt.Sprintf("a daemon runs already (process %d)", e.Pid)
}

// How long the end of a daemon may take, 5 s in all.
const (
	killWithin = 4 * time.Second        // of the terminals
	hearWithin = 500 * time.Millisecond // of the hosts
)

// Agent is one daemon. It is used for one Run. It is the local door's
// local.Daemon; those methods are safe for concurrent use while it runs.
//
// Goroutines: Run's caller waits; the local server's; per host one that keeps
// its link up, owned by links.
type Agent struct {
	// Set at construction.
	cfg      Config
	settings config.Config
	level    zerolog.Level
	login    func() *shell.Cache // of the login environment

	degraded degraded // each part reports its own causes

	// Set by Run before requests are answered.
	log     zerolog.Logger
	started time.Time
	pool    *term.Pool
	hosts   *hostStore
	links   *links
	end     context.CancelFunc
	pairing chan struct{} // 1 slot: hosts come and go one at a time
}

// New checks the configuration. It touches nothing yet.
func New(c Config) (*Agent, error) {
	settings := config.Default()
	if c.Settings != nil {
		settings = *c.Settings
	}
	name := cmp.Or(c.LogLevel, settings.Daemon.LogLevel)
	level, err := zerolog.ParseLevel(name)
	if err != nil || level < zerolog.DebugLevel || level > zerolog.ErrorLevel {
		return nil, fmt.Errorf("log level %q must be debug, info, warn or error", name)
	}
	c.Terminals = terminalOptions(settings.Terminals, c.Terminals)
	return &Agent{cfg: c, settings: settings, level: level, login: sync.OnceValue(loginCache), pairing: make(chan struct{}, 1)}, nil
}

// Run is the daemon's life. It returns nil when ctx ended or a client asked it
// to shut down, after everything it started has ended. Errors: ErrRoot, a
// *RunningError, or what kept it from starting.
func (a *Agent) Run(ctx context.Context) error {
	if os.Geteuid() == 0 && !a.cfg.AllowRoot {
		return ErrRoot
	}
	ctx, a.end = context.WithCancel(ctx)
	defer a.end()
	a.started = time.Now()

	lock, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close() // last: then there is no daemon any more
	if err := secret.Dir(a.cfg.Dirs.State); err != nil {
		return err
	}
	logFile, err := openLog(LogPath(a.cfg.Dirs), maxLog)
	if err != nil {
		return err
	}
	defer logFile.Close()
	a.log = zerolog.New(logFile).Level(a.level).With().Timestamp().Logger()
	if a.hosts, err = openHosts(hostsPath(a.cfg.Dirs)); err != nil {
		return err
	}
	_ = os.RemoveAll(scriptsDir(a.cfg.Dirs)) // of a daemon that was killed; shells have read theirs
	listener, err := ipc.Listen(SocketPath(a.cfg.Dirs))
	if err != nil {
		return err
	}
	a.pool = term.NewPool(a.cfg.Terminals)
	a.links = newLinks(a.pool, a.cfg.Version, a.settings.Uplink, &a.log)
	for _, h := range a.hosts.list() {
		a.links.start(h)
	}
	return a.serve(ctx, listener)
}

// lockPatience is how long the lock may be held by a daemon that does not
// answer: it is about to, or it is ending and will give the lock up.
const lockPatience = time.Second

// lock makes this the only daemon with these directories. The socket has a
// lock too, but is there only when everything else is.
func (a *Agent) lock(ctx context.Context) (*ipc.Held, error) {
	if err := secret.Dir(a.cfg.Dirs.Runtime); err != nil {
		return nil, err
	}
	var lock *ipc.Held
	var err error
	wait(lockPatience, func() bool {
		lock, err = ipc.Lock(filepath.Join(a.cfg.Dirs.Runtime, "daemon.lock"))
		return !isLocked(err) || ctx.Err() != nil || a.answers(ctx)
	})
	var locked *ipc.LockedError
	if errors.As(err, &locked) {
		return nil, &RunningError{locked.Pid}
	}
	return lock, err
}

func isLocked(err error) bool {
	var locked *ipc.LockedError
	return errors.As(err, &locked)
}

// answers reports whether a daemon listens.
func (a *Agent) answers(ctx context.Context) bool {
	conn, err := ipc.Dial(ctx, SocketPath(a.cfg.Dirs))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// serve answers requests until ctx ends, then ends everything in order.
func (a *Agent) serve(ctx context.Context, listener *ipc.Listener) error {
	server := local.NewServer(local.Options{Access: a.pool.As, Daemon: a, Logger: &a.log, Version: a.cfg.Version})
	failed := make(chan error, 1) // 1: Serve's end is heard or not
	go func() { failed <- server.Serve(listener) }()
	a.log.Info().Str("version", a.cfg.Version).Int("pid", os.Getpid()).Msg("ready")
	if a.cfg.Ready != nil {
		a.cfg.Ready()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil
	}
	a.log.Info().Err(err).Msg("ending")
	server.Drain()
	a.closeTerminals()
	a.links.close(hearWithin)
	return errors.Join(err, server.Close(), <-failed)
}

// closeTerminals kills what runs.
func (a *Agent) closeTerminals() {
	ctx, cancel := context.WithTimeout(context.Background(), killWithin)
	defer cancel()
	if err := a.pool.Close(ctx); err != nil {
		a.log.Error().Err(err).Msg("terminals left behind")
	}
}

// Shutdown makes Run return soon.
func (a *Agent) Shutdown() { a.end() }
