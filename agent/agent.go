package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/adoptions"
	"tether/agent/config"
	"tether/agent/declared"
	"tether/agent/history"
	"tether/agent/holder"
	"tether/agent/hosts"
	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/agent/runs"
	"tether/agent/start"
	"tether/agent/term"
	"tether/internal/checkout"
	"tether/internal/idle"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/limits"
	"tether/platform/notify"
	"tether/platform/proc"
	"tether/platform/roam"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/problems"
)

// Config says how to run a daemon. Dirs is required.
type Config struct {
	Dirs    dirs.Dirs
	Version string // of this program, shown to hosts and in status
	// AllowRoot lets the daemon run as root, see [proc.Root]. Without it Run refuses to:
	// every terminal, and every command that a local program starts through it, would be
	// root's.
	AllowRoot bool
	// Settings is the person's configuration; nil means the defaults.
	Settings *config.Config
	// Over holds the settings that override the configuration file. They are needed when
	// the file is read again.
	Over []config.Setting
	// Secrets says where tokens and this machine's key may be kept. The zero value is a
	// file that only the user can read.
	Secrets hosts.Secrets
	// LogLevel, if not "", overrides that of Settings.
	LogLevel string
	// Ready, if not nil, is called once when requests are answered.
	Ready func()
	// Notify, if not nil, shows a text on the person's desktop. It may block until ctx
	// ends.
	Notify func(ctx context.Context, title, body string) error
	// NotifyTLS is for connections to receivers of notifications, in tests; nil means
	// Go's defaults.
	NotifyTLS *tls.Config
	// AskDesktop, if not nil, shows a text with buttons on the person's desktop and
	// returns the key of the button that the person pressed, see notify.Ask. If it
	// returns an error, Notify shows the text instead.
	AskDesktop func(ctx context.Context, title, body string, buttons []notify.Button, trust func(pid int) error) (string, error)
	// Holder says how to start the holder process of each terminal, which lets the
	// terminal outlive the daemon. It is required, unless Terminals has a Start.
	Holder Program
	// Reader is this program as one that calls adopt.Main: its absolute path and
	// arguments. Nil means that no panes can be adopted.
	Reader []string
	// Replace makes Run wait for the end of a daemon that was asked to hand over.
	Replace bool
	// Fields of Terminals that are not zero override Settings. For tests.
	Terminals term.Options
	// Watch replaces roam.Watch in tests.
	Watch func(context.Context, func(roam.Change)) error
	// HistoryFS, if not nil, is where the history is kept, in tests.
	HistoryFS history.FS
	// Timeout, if not 0, replaces the times for which a person waits at most for
	// terminals to end and hosts to hear of something. For tests, on machines that stand
	// still.
	Timeout time.Duration
}

// SocketPath returns the path of the socket on which the daemon with these directories
// listens.
func SocketPath(d dirs.Dirs) string { return filepath.Join(d.Runtime, "daemon.sock") }

// LogPath returns the path of the log of the daemon with these directories.
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

// atMost returns the longest time to wait for something while a person waits:
// Config.Timeout if it is set, otherwise d.
func (a *Agent) atMost(d time.Duration) time.Duration { return cmp.Or(a.cfg.Timeout, d) }

// How long the end of a daemon may take, 9 s in all with the history's.
const (
	killWithin = 4 * time.Second        // for the terminals to end
	hearWithin = 500 * time.Millisecond // for the hosts to learn of it
	// restWithin is for the rest. A disk that stands still holds up what writes a file:
	// then the daemon ends without it.
	restWithin = 3500 * time.Millisecond
	lastWithin = 500 * time.Millisecond // for what was printed, after all that
)

// Agent is one daemon, for one call of Run. It implements local.Daemon for the local
// door; those methods are safe for concurrent use while Run runs.
//
// Goroutines: the caller of Run, which waits; those of the local server; and one per
// host, which keeps the link up and is owned by links.
type Agent struct {
	// Set at construction.
	cfg      Config
	settings config.Config
	level    zerolog.Level
	policy   *policy.Engine
	shown    *redact.Rules       // for text that leaves the machine
	login    func() *shell.Cache // of the login environment
	again    chan struct{}       // 1: the login environment is not known, see askLoginAgain

	checkouts         checkout.Finder
	directoryVerdicts directoryVerdicts

	watched  watchLog
	degraded degraded               // each part reports its own causes
	tcp      atomic.Pointer[string] // address of loopback TCP; nil while it is not served
	killing  atomic.Bool            // the terminals end with the daemon
	idle     *idle.Trimmer          // stirred when something began or ended, see keepSmall
	identity local.Identity

	// Set by Run before requests are answered.
	log      zerolog.Logger
	leveled  leveled // the destination of log
	held     *ipc.Held
	started  time.Time
	own      proc.Limits // of this process
	pool     *term.Pool
	holders  *holders
	hosts    *hosts.Paired
	runs     *runs.Runs // nil if no history is kept
	starter  *start.Starter
	confiner *start.Confiner
	// declared is closed before the terminals end or are left.
	declared *declared.Set
	adopting *adoptions.Keeper
	end      context.CancelFunc
	last     atomic.Pointer[func()] // makes way for the next daemon
	kept     atomic.Int64           // terminals that were left running
}

// New checks the configuration and returns a daemon. It does not open or create anything
// yet.
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
	a := &Agent{cfg: c, settings: settings, level: level, shown: shown, login: sync.OnceValue(func() *shell.Cache { return loginCache(time.Duration(settings.Terminals.LoginTimeout)) }),
		again: make(chan struct{}, 1), idle: idle.New(quietAfter)}
	a.policy, err = policy.New(c.policyOptions(a.mask))
	return a, err
}

// Run runs the daemon. It returns nil when ctx has ended or a client has asked it to shut
// down, after everything that it started has ended, or after 9 s. Errors: ErrRoot, a
// *RunningError, a *LockError, or another failure to start.
func (a *Agent) Run(ctx context.Context) error {
	if proc.Root() && !a.cfg.AllowRoot {
		return ErrRoot
	}
	ctx, a.end = context.WithCancel(ctx)
	defer a.end()
	a.started = time.Now()
	a.own = proc.OwnLimits() // first: on macOS, no other goroutine may make files meanwhile

	lock, err := a.lock(ctx)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close() // runs last: a free lock says that there is no daemon any more
	a.held = lock
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(a.atMost(killWithin) + a.atMost(hearWithin) + restWithin):
	}
	if last := a.last.Load(); last != nil {
		(*last)()
	}
	return nil
}

// run is Run, once it has the lock.
func (a *Agent) run(ctx context.Context) error {
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
		Checkout: a.lentCheckout,
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
	if err := a.openPool(adopting); err != nil {
		stopAdopting()
		return errors.Join(err, listener.Close())
	}
	defer a.holders.wg.Wait()
	defer stopAdopting()
	matchers, err := a.settings.Matchers()
	if err != nil {
		return errors.Join(err, listener.Close()) // loading has checked them
	}
	endRuns, err := a.openRuns(ctx, matchers)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	a.last.Store(new(func() {
		endRuns(lastWithin)
		_ = listener.Close() // the process ends in any case
	}))
	defer endRuns(time.Hour) // after the terminals have ended or were left; Run has a bound
	a.openStarter()
	a.openDeclared()
	a.openAdopted()
	return a.serve(ctx, listener, matchers)
}

// Causes in status of faults with files that the system does not let the daemon write.
const (
	stateCause = "state directory"
	logCause   = "log"
)

// openState makes the state directory. If the disk is full or not writable, the daemon
// works without it and only new state is not kept.
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

// openPool makes the pool and adopts the terminals that outlived earlier daemons.
// Requests wait until it returns, because the list of terminals is not complete before.
func (a *Agent) openPool(ctx context.Context) error {
	opts, err := holderOptions(a.cfg.Dirs)
	if err != nil {
		return err
	}
	opts.Path, opts.Argv = a.cfg.Holder.Path, a.cfg.Holder.Argv
	o := a.cfg.Terminals
	o.Observe, o.MayLend = a.acted, a.mayLend
	a.openOutward(&o)
	o.Lendable, o.Checkout = a.hosts.Lendable, a.checkouts.AsOf
	a.holders = &holders{
		opts:    opts,
		scripts: scriptsDir(a.cfg.Dirs), logBytes: o.LogBytes, stall: o.Stall, keepFor: max(o.KeepFor, leastKeep), log: &a.log, report: a.degraded.report, adopted: a.adopted,
	}
	if o.Start == nil {
		o.Start = a.holders.start
	}
	o.Left = a.holders.again
	a.pool = term.NewPool(o)
	a.holders.adopt(ctx, a.pool)
	return nil
}

// serve answers requests until ctx ends, then ends everything in order.
func (a *Agent) serve(ctx context.Context, listener *ipc.Listener, matchers *problems.Set) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer a.openIdentity(ctx)()
	tokens := a.openTokens()
	files, _ := limits.Files() // 0 where the system does not tell
	var server *local.Server
	notifier := a.newNotifier(&server)
	server = local.NewServer(local.Options{Notifier: notifier, Matchers: matchers, Access: a.pool.As, NoShares: !a.settings.Lend.Shares, Daemon: a, Hosts: a.hosts, Declared: a, Adopter: a, Logger: &a.log, Version: a.cfg.Version, Machine: machineName(),
		Policy: a.policy, Starter: a.starter, Sandbox: a.confiner.Command, Tokens: tokens, Origins: a.settings.Local.Origins, Agents: local.OpenAgents(a.cfg.Dirs.State), Identity: &a.identity, Files: files, Stirred: a.idle.Stir, Expect: a.holders.expect,
		Runs: a.runs, Checkouts: &a.checkouts, TellsCheckout: a.tellsCheckout,
		Unseen: a.settings.Agents.Unseen, Never: a.never, Mask: func(text string) string { return a.mask(text, nil) }})
	ports := a.newPorts(server)
	a.hosts.Link(a.pool, func(host string) hosts.Tools { return a.toolsFor(server, ports, host) })
	failed := make(chan error, 1) // 1: Serve's end is heard or not
	go func() { failed <- server.Serve(listener) }()
	defer a.serveTCP(server, tokens)() // ends when the server is closed
	defer a.keepSmall(ctx)()
	defer a.findPorts(ctx)()
	defer a.askLoginAgain(ctx)()
	defer a.notifyQuestions(ctx, server)()
	stopNotifier := a.runNotifier(ctx, notifier)
	stopAdopted := a.keepAdopted(ctx)
	defer stop() // before what ends with ctx is waited for
	a.log.Info().Str("version", a.cfg.Version).Int("pid", os.Getpid()).Msg("ready")
	if a.cfg.Ready != nil {
		a.cfg.Ready()
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil
	}
	stopNotifier() // the end of the terminals is no news
	a.log.Info().Err(err).Bool("terminals", a.killing.Load()).Msg("ending")
	a.declared.Close()
	stopAdopted()
	if a.killing.Load() {
		server.Drain()
		a.closeTerminals()
	} else {
		server.DrainKeeping()
		a.leaveTerminals()
	}
	err = errors.Join(err, server.Close(), <-failed)
	a.holders.opts.Spare.Close()
	return err
}

// closeTerminals kills the running terminals and gives the hosts up to hearWithin to
// learn of it.
func (a *Agent) closeTerminals() {
	ctx, cancel := context.WithTimeout(context.Background(), a.atMost(killWithin))
	defer cancel()
	if err := a.pool.Close(ctx); err != nil {
		a.log.Error().Err(err).Msg("terminals left behind")
	}
	if n, err := holder.EndStaying(ctx, holdersDir(a.cfg.Dirs)); n > 0 {
		a.log.Info().Err(err).Int("terminals", n).Msg("ended what agents had left running")
	}
	a.hosts.Close(a.atMost(hearWithin))
}

// leaveTerminals leaves the terminals to the next daemon. First it closes the links as if
// the network had failed: no terminal that continues is withdrawn from a host, and the
// next daemon sends the host the output that it lacks.
func (a *Agent) leaveTerminals() {
	ctx, cancel := context.WithTimeout(context.Background(), a.atMost(killWithin))
	defer cancel()
	a.hosts.Close(0)
	kept, err := a.pool.Detach(ctx)
	if err != nil {
		a.log.Error().Err(err).Msg("terminals left behind")
	}
	a.kept.Store(int64(kept))
	a.log.Info().Int("terminals", kept).Msg("left to the next daemon")
}
