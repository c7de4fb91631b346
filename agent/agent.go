package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/config"
	"tether/agent/declared"
	"tether/agent/holder"
	"tether/agent/hosts"
	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/agent/start"
	"tether/agent/term"
	"tether/internal/idle"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/notify"
	"tether/platform/proc"
	"tether/platform/roam"
	"tether/platform/secret"
	"tether/platform/shell"
)

// Config says how to run a daemon. Dirs is required.
type Config struct {
	Dirs    dirs.Dirs
	Version string // of this program, shown to hosts and in status
	// AllowRoot lets it run as root, see [proc.Root]. Otherwise it refuses: every terminal, and every command that a local program starts
	// through it, would be root's.
	AllowRoot bool
	// Settings is the person's configuration; nil means the defaults.
	Settings *config.Config
	// Over are the settings that override the configuration file, needed when the file is read again.
	Over []config.Setting
	// Secrets says where tokens and this machine's key may be kept. The zero value is a file that only the user can read.
	Secrets hosts.Secrets
	// LogLevel, if not "", overrides that of Settings.
	LogLevel string
	// Ready, if not nil, is called once when requests are answered.
	Ready func()
	// Notify, if not nil, shows a text on the person's desktop. It may block until ctx ends.
	Notify func(ctx context.Context, title, body string) error
	// AskDesktop, if not nil, shows a text with buttons there, and returns the key of the one that the person has pressed, see notify.Ask.
	// Where it returns an error Notify shows the text instead.
	AskDesktop func(ctx context.Context, title, body string, buttons []notify.Button, trust func(pid int) error) (string, error)
	// Holder starts the process that each terminal gets, so that it outlives this one. The zero value means that terminals run in this
	// process.
	Holder Program
	// NoHolders is why the person's terminals run in this process, for status; "" if they do not. Agents' terminals still get a holder if
	// there is a Holder, so that processes that they leave behind stay known as theirs.
	NoHolders string
	// Replace waits for the end of a daemon that was asked to hand over.
	Replace bool
	// Terminals, where not zero, comes before Settings. For tests.
	Terminals term.Options
	// Watch replaces roam.Watch in tests.
	Watch func(context.Context, func(roam.Change)) error
	// Timeout, if not 0, replaces the times for which a person waits at most for terminals to end and hosts to hear of something. For tests,
	// on machines that stand still.
	Timeout time.Duration
}

// SocketPath is where the daemon with these directories listens.
func SocketPath(d dirs.Dirs) string { return filepath.Join(d.Runtime, "daemon.sock") }

// LogPath is where it logs.
func LogPath(d dirs.Dirs) string { return filepath.Join(d.State, "daemon.log") }

// ErrRoot is returned by Run for root without AllowRoot.
var ErrRoot = errors.New("the daemon does not run as root")

// RunningError is returned by Run when another daemon serves the same directories.
type RunningError struct{ Pid int }

func (e *RunningError) Error() string {
	if e.Pid == 0 {
		return "a daemon is already running"
	}
	return fmt.Sprintf("a daemon is already running (process %d)", e.Pid)
}

// atMost is how long something is waited for that takes at most d while a person waits.
func (a *Agent) atMost(d time.Duration) time.Duration { return cmp.Or(a.cfg.Timeout, d) }

// How long the end of a daemon may take, 5 s in all.
const (
	killWithin = 4 * time.Second        // of the terminals
	hearWithin = 500 * time.Millisecond // of the hosts
)

// Agent is one daemon. It is used for one Run. It implements local.Daemon for the local door; those methods are safe for concurrent use
// while it runs.
//
// Goroutines: Run's caller waits; the local server's; one per host that keeps its link up, owned by links.
type Agent struct {
	// Set at construction.
	cfg      Config
	settings config.Config
	level    zerolog.Level
	policy   *policy.Engine
	shown    *redact.Rules       // for text that leaves the machine
	login    func() *shell.Cache // of the login environment

	watched  watchLog
	degraded degraded               // each part reports its own causes
	tcp      atomic.Pointer[string] // address of loopback TCP; nil while it is not served
	killing  atomic.Bool            // the terminals end with the daemon
	idle     *idle.Trimmer          // stirred when something began or ended, see keepSmall

	// Set by Run before requests are answered.
	log      zerolog.Logger
	leveled  leveled // the destination of log
	held     *ipc.Held
	started  time.Time
	pool     *term.Pool
	holders  *holders // or nil
	hosts    *hosts.Paired
	starter  *start.Starter
	confiner *start.Confiner
	// declared is closed before the terminals end or are left.
	declared *declared.Set
	end      context.CancelFunc

	kept int // terminals that were left running; set when Run returns
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
	c.Terminals = terminalOptions(settings, c.Terminals)
	shown, err := outwardRules(settings.Lend)
	if err != nil {
		return nil, fmt.Errorf("what to redact: %w", err)
	}
	a := &Agent{cfg: c, settings: settings, level: level, shown: shown, login: sync.OnceValue(loginCache),
		idle: idle.New(quietAfter)}
	a.policy, err = policy.New(c.policyOptions(a.mask))
	return a, err
}

// Run is the daemon's life. It returns nil when ctx ended or a client asked it to shut down, after everything that it started has ended.
// Errors: ErrRoot, a *RunningError, a *LockError, or another failure to start.
func (a *Agent) Run(ctx context.Context) error {
	if proc.Root() && !a.cfg.AllowRoot {
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
	a.held = lock
	if err := a.openState(); err != nil {
		return err
	}
	logFile, err := openLog(LogPath(a.cfg.Dirs), maxLog, func(trouble string) { a.degraded.report(logCause, trouble) })
	if err != nil {
		return err
	}
	defer logFile.Close()
	a.leveled.Writer = logFile
	a.leveled.level.Store(int32(a.level))
	a.log = zerolog.New(&a.leveled).Level(zerolog.DebugLevel).With().Timestamp().Logger()
	a.auditStart()
	defer a.auditEnd()
	a.watched.audit = a.policy.Audit
	defer a.watched.close()
	a.hosts, err = hosts.Open(hosts.Options{
		Dirs: a.cfg.Dirs, Secrets: a.cfg.Secrets, Uplink: a.settings.Uplink, Version: a.cfg.Version, Machine: machineName(), Logger: &a.log,
		Audit: a.policy.Audit, Report: a.degraded.report, Up: a.auditUp, Timeout: a.cfg.Timeout, Watch: a.cfg.Watch,
		Watched: a.watched.note, HostGrants: a.settings.Lend.HostGrants, Park: time.Duration(a.settings.Lend.Park),
	})
	if err != nil {
		return err
	}
	listener, err := ipc.Listen(SocketPath(a.cfg.Dirs))
	if err != nil {
		return err
	}
	a.openConfiner()
	adopting, stopAdopting := context.WithCancel(ctx)
	defer a.holdersEnd(stopAdopting)
	a.openPool(adopting)
	a.openStarter()
	a.openDeclared()
	return a.serve(ctx, listener)
}

// Causes in status of files that the system does not let the daemon write.
const (
	stateCause = "state directory"
	logCause   = "log"
)

// openState makes the state directory. If the disk is full or not writable, the daemon works without it and only new state is not kept.
func (a *Agent) openState() error {
	err := secret.Dir(a.cfg.Dirs.State)
	if err != nil && !isTrouble(err) {
		return err
	}
	if err != nil {
		a.degraded.report(stateCause, fmt.Sprintf("cannot create the directory; nothing is kept for the next daemon: %v", err))
	}
	return nil
}

// openPool makes the pool, with the terminals that outlived earlier daemons. Requests wait meanwhile, because the list is not complete yet.
func (a *Agent) openPool(ctx context.Context) {
	o := a.cfg.Terminals
	o.Observe, o.MayLend = a.acted, a.mayLend
	a.openOutward(&o)
	o.Lendable = a.hosts.Has
	if a.cfg.Holder.Path == "" {
		a.pool = term.NewPool(o)
		return
	}
	opts, err := holderOptions(a.cfg.Dirs)
	if err != nil {
		a.log.Error().Err(err).Msg("no holders")
		a.degraded.report(holderCause, fmt.Sprintf("terminals end with the daemon, and agents start none: %v", err))
		if o.Start == nil {
			o.Start = startWithout(err)
		}
		a.pool = term.NewPool(o)
		return
	}
	opts.Path, opts.Argv = a.cfg.Holder.Path, a.cfg.Holder.Argv
	a.holders = &holders{
		opts:    opts,
		scripts: scriptsDir(a.cfg.Dirs), logBytes: o.LogBytes, stall: o.Stall, keepFor: max(o.KeepFor, leastKeep), log: &a.log, report: a.degraded.report, adopted: a.adopted,
		agentsOnly: a.cfg.NoHolders != "",
	}
	if o.Start == nil {
		o.Start = a.holders.start
	}
	o.Left = a.holders.again
	a.pool = term.NewPool(o)
	a.holders.adopt(ctx, a.pool)
}

// holdersEnd waits until nothing is being adopted any more.
func (a *Agent) holdersEnd(stop context.CancelFunc) {
	stop()
	if a.holders != nil {
		a.holders.wg.Wait()
	}
}

// lockTimeout is how long the lock may be held by a daemon that does not answer: it is about to, or it is ending and will give the lock
// up.
const lockTimeout = time.Second

// lockEvery is how often the lock is tried meanwhile.
const lockEvery = 5 * time.Millisecond

// replaceTimeout is the same for one that was asked to hand over: its end may take 5 s.
const replaceTimeout = 8 * time.Second

// lock makes this the only daemon with these directories. The socket has a lock too, but is there only when everything else is.
func (a *Agent) lock(ctx context.Context) (*ipc.Held, error) {
	if err := secret.Dir(a.cfg.Dirs.Runtime); err != nil {
		return nil, err
	}
	var lock *ipc.Held
	var err error
	timeout := lockTimeout
	if a.cfg.Replace {
		timeout = replaceTimeout
	}
	for end := time.Now().Add(timeout); ; time.Sleep(lockEvery) {
		lock, err = lockDaemon(a.cfg.Dirs)
		_, running := errors.AsType[*RunningError](err)
		if !running || ctx.Err() != nil || !a.cfg.Replace && listens(ctx, a.cfg.Dirs) || time.Now().After(end) {
			break
		}
	}
	if running, ok := errors.AsType[*RunningError](err); ok && !listens(ctx, a.cfg.Dirs) {
		if held := lockError(&ipc.LockedError{Path: lockPath(a.cfg.Dirs), Pid: running.Pid}); !held.isDaemon(running.Pid) {
			return nil, held
		}
	}
	return lock, err
}

// serve answers requests until ctx ends, then ends everything in order.
func (a *Agent) serve(ctx context.Context, listener *ipc.Listener) error {
	tokens := a.openTokens()
	matchers, err := a.settings.Matchers()
	if err != nil {
		return err // loading has checked them
	}
	server := local.NewServer(local.Options{Matchers: matchers, Access: a.pool.As, NoShares: !a.settings.Lend.Shares, Daemon: a, Hosts: a.hosts, Declared: a, Logger: &a.log, Version: a.cfg.Version, Machine: machineName(),
		Policy: a.policy, Starter: a.starter, Sandbox: a.confiner.Command, Tokens: tokens, Origins: a.settings.Local.Origins, Agents: local.OpenAgents(a.cfg.Dirs.State), Stirred: a.idle.Stir})
	a.hosts.Link(a.pool, func(host string) hosts.Tools { return a.toolsFor(server, host) })
	failed := make(chan error, 1) // 1: Serve's end is heard or not
	go func() { failed <- server.Serve(listener) }()
	defer a.serveTCP(server, tokens)() // ends when the server is closed
	defer a.keepSmall(ctx)()
	defer a.notifyQuestions(ctx, server)()
	a.log.Info().Str("version", a.cfg.Version).Int("pid", os.Getpid()).Msg("ready")
	if a.cfg.Ready != nil {
		a.cfg.Ready()
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil
	}
	a.log.Info().Err(err).Bool("terminals", a.killing.Load()).Msg("ending")
	a.declared.Close()
	if a.killing.Load() {
		server.Drain()
		a.closeTerminals()
	} else {
		server.DrainKeeping()
		a.leaveTerminals()
	}
	return errors.Join(err, server.Close(), <-failed)
}

// closeTerminals kills the running terminals and gives the hosts a moment to learn of it.
func (a *Agent) closeTerminals() {
	ctx, cancel := context.WithTimeout(context.Background(), a.atMost(killWithin))
	defer cancel()
	if err := a.pool.Close(ctx); err != nil {
		a.log.Error().Err(err).Msg("terminals left behind")
	}
	if n, err := holder.EndStaying(ctx, holdersDir(a.cfg.Dirs)); n > 0 {
		a.log.Info().Err(err).Int("terminals", n).Msg("ended what agents had left running")
	}
	a.hosts.Close(a.atMost(hearWithin), func(term.ID) bool { return true })
}

// leaveTerminals leaves surviving terminals to the next daemon. First the links go, as if the network had: nothing is withdrawn from a
// host, and the next daemon sends the output that it lacks.
func (a *Agent) leaveTerminals() {
	ctx, cancel := context.WithTimeout(context.Background(), a.atMost(killWithin))
	defer cancel()
	fragile := map[term.ID]bool{}
	for _, info := range a.pool.Fragile() {
		fragile[info.ID] = true
		a.log.Warn().Str("terminal", string(info.ID)).Msg("ends with this process")
	}
	if err := a.pool.KillFragile(ctx); err != nil {
		a.log.Error().Err(err).Msg("terminals left behind")
	}
	a.hosts.Close(a.atMost(hearWithin), func(id term.ID) bool { return fragile[id] })
	kept, err := a.pool.Detach(ctx)
	if err != nil {
		a.log.Error().Err(err).Msg("terminals left behind")
	}
	a.kept = kept
	a.log.Info().Int("terminals", kept).Msg("left to the next daemon")
}
