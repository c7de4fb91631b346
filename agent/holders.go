package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/flow"
	"tether/agent/holder"
	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/retry"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/platform/secret"
)

// Program says how to start this program as another process that calls holder.Main.
type Program struct {
	Path string   // absolute
	Argv []string // including argument 0; the terminal's id is appended
}

// holdersDir returns the directory of the holders' sockets. Its name contains no version,
// so that daemons of all versions find the same holders.
func holdersDir(d dirs.Dirs) string { return filepath.Join(d.Runtime, "h") }

// keyName is the file with the holders' key.
const keyName = "holders.key"

// holderOptions returns the place of the holders and the key for them. It makes the key
// if there is none yet, so the caller must have the daemon's lock.
func holderOptions(d dirs.Dirs) (holder.Options, error) {
	o := holder.Options{Dir: holdersDir(d), Lock: lockPath(d), Inputs: new(flow.Typing), Spare: new(holder.Spare)}
	var err error
	if o.Key, err = holderKey(d); err != nil {
		return o, fmt.Errorf("the holders' key: %w", err)
	}
	return o, nil
}

// holderKey returns the holders' key. If there is none, it makes one in the state
// directory or, if that cannot be written, beside the holders' sockets: the next daemon
// finds it there as long as it finds these. It replaces a damaged key, but none that it
// cannot read: holders with that one can be resumed later.
func holderKey(d dirs.Dirs) ([]byte, error) {
	var places []string
	var errs []error
	for _, dir := range []string{d.State, d.Runtime} {
		key, err := secret.ReadFile(filepath.Join(dir, keyName))
		switch {
		case err == nil && len(key) == holder.KeyBytes:
			return key, nil
		case err == nil, errors.Is(err, fs.ErrNotExist):
			places = append(places, dir)
		default:
			errs = append(errs, err)
		}
	}
	key := make([]byte, holder.KeyBytes)
	_, _ = rand.Read(key) // never fails, by its documentation
	for _, dir := range places {
		err := secret.Dir(dir)
		if err == nil {
			err = secret.WriteFile(filepath.Join(dir, keyName), key)
		}
		if err == nil {
			return key, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

const (
	startWithin = 10 * time.Second // for a holder to start, until its child runs
	adoptWithin = 3 * time.Second  // for all adoptions together, before requests are answered; slower ones continue after that
	adoptRetry  = time.Second      // between the first two attempts, doubled each time up to adoptRest
	adoptRest   = time.Minute
	reapWithin  = 10 * time.Second // for ending the processes that a killed holder has left
	leastKeep   = time.Minute      // how long a holder keeps an exit for the next daemon at least
)

// holderCause is the cause in status of faults with holders.
const holderCause = "holders"

// holders starts terminals in processes of their own, and adopts those of an earlier
// daemon. It is safe for concurrent use. Its goroutines, one per terminal that is not
// adopted yet, end with the context of adopt; Run waits for them.
type holders struct {
	// Set at construction.
	opts     holder.Options
	scripts  string // directory, see integrate
	logBytes int
	stall    time.Duration
	keepFor  time.Duration // how long a holder keeps an exit while there is no daemon
	log      *zerolog.Logger
	report   func(cause, text string)
	adopted  func(term.ID) // called for each terminal that was adopted

	pool *term.Pool      // set before adopt
	ctx  context.Context // of adopt
	wg   sync.WaitGroup
}

// start starts a terminal in a holder.
func (s *holders) start(id term.ID, c pty.Command) (term.PTY, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	client, err := holder.Spawn(ctx, s.opts, holder.Spec{
		ID: string(id), Command: c, LogBytes: term.HolderLogBytes(s.logBytes), KeepExited: s.keepFor,
		Stall: 3 * s.stall, // a reader in the daemon may hold the child for one stall time
	})
	var wrong *pty.StartError
	switch {
	case err == nil:
		s.report(holderCause, "")
		return held{client, id}, nil
	case errors.As(err, &wrong), errors.Is(err, holder.ErrInUse):
		return nil, err
	}
	s.log.Warn().Err(err).Str("terminal", string(id)).Msg("no holder")
	s.report(holderCause, fmt.Sprintf("no terminal can be started, since its holder cannot: %v", err))
	return nil, fmt.Errorf("a terminal needs a holder process, which could not be started: %w; tether doctor says more", err)
}

// expectAfter is how long after a start the next holder's process is started: the shell
// needs the processors first.
const expectAfter = 50 * time.Millisecond

// expect starts a process for the next terminal. It does not block.
func (s *holders) expect() {
	time.AfterFunc(expectAfter, func() { _ = s.opts.Spare.Make(s.opts) }) // without it, a start only takes longer
}

// held is a terminal's connection to its holder.
type held struct {
	*holder.Client
	id term.ID
}

// Signal sends a signal. If the holder cannot, the error is term.ErrNoSignals.
func (h held) Signal(name string) error {
	err := h.Client.Signal(name)
	if errors.Is(err, holder.ErrNoSignal) {
		return fmt.Errorf("%w: %w", term.ErrNoSignals, err)
	}
	return err
}

// Kill ends the child and all its descendants. If the holder is gone by then, Gone has
// ended what it has left.
func (h held) Kill(ctx context.Context, grace time.Duration) error {
	err := h.Client.Kill(ctx, grace)
	if errors.Is(err, holder.ErrLost) && h.Gone() {
		return nil
	}
	return err
}

// Gone reports whether the holder is gone. If so, it also ends the processes of the
// terminal that a killed holder has left.
func (h held) Gone() bool {
	if !h.Client.Gone() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), reapWithin)
	defer cancel()
	_ = proc.Tree{Tag: proc.Tag(string(h.id)), Reaped: true}.Kill(ctx, time.Second) // does something only on systems with tags
	return true
}

// adopt adopts the terminals of earlier daemons. It returns when that is done, or after
// adoptWithin: slower ones continue until ctx ends.
func (s *holders) adopt(ctx context.Context, pool *term.Pool) {
	s.pool, s.ctx = pool, ctx
	ids, err := holder.List(s.opts.Dir)
	if err != nil {
		s.log.Error().Err(err).Msg("terminals of an earlier daemon")
		s.report(holderCause, fmt.Sprintf("cannot find the terminals of an earlier daemon: %v", err))
		return
	}
	s.removeScripts(ids)
	all := make(chan struct{})
	var first sync.WaitGroup
	for _, id := range ids {
		first.Add(1)
		s.wg.Go(func() { s.adoptOne(id, first.Done) })
	}
	go func() { // ends with the first attempts
		first.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(adoptWithin):
	case <-ctx.Done():
	}
}

// again adopts a terminal whose connection to its holder was lost.
func (s *holders) again(id term.ID) {
	if s.ctx.Err() == nil {
		s.wg.Go(func() { s.adoptOne(string(id), func() {}) })
	}
}

// adoptOne adopts a terminal, and tries again until that has succeeded, cannot succeed,
// or the context of adopt ends. tried is called after the first attempt.
func (s *holders) adoptOne(id string, tried func()) {
	tried = sync.OnceFunc(tried)
	defer tried()
	for pause := adoptRetry; ; pause = min(2*pause, adoptRest) {
		err := s.attempt(id)
		var version *holder.VersionError
		var refused *holder.RefusedError
		switch {
		case err == nil:
			s.log.Info().Str("terminal", id).Msg("taken up")
			return
		case errors.Is(err, holder.ErrGone), errors.Is(err, term.ErrClosed), s.ctx.Err() != nil:
			return
		case errors.As(err, &refused):
			s.report(holderCause, fmt.Sprintf("terminal %s runs, but cannot be resumed: %v", id, refused))
			s.log.Error().Err(err).Str("terminal", id).Msg("not taken up")
			return
		case errors.As(err, &version):
			s.report(holderCause, fmt.Sprintf("terminal %s runs, but cannot be resumed: %v; a newer or older tether can", id, err))
			s.log.Error().Err(err).Str("terminal", id).Msg("not taken up")
			return
		}
		s.log.Warn().Err(err).Str("terminal", id).Dur("retry", pause).Msg("not taken up yet")
		tried()
		if !retry.Wait(s.ctx, pause) {
			return
		}
	}
}

// attempt adopts one terminal.
func (s *holders) attempt(id string) error {
	client, err := holder.Dial(s.ctx, s.opts, id)
	if err != nil {
		return err
	}
	past := term.Past{
		ID: term.ID(id), Started: client.Started(), Meta: client.Meta(),
		Log:   output.Past{Size: client.Size(), Base: client.Base(), End: client.End(), Taken: client.Taken(), Window: holder.Window},
		Ended: func() { _ = os.RemoveAll(filepath.Join(s.scripts, id)) },
	}
	ended, _ := client.ExitedAt()
	past.Exited = !ended.IsZero()
	for _, c := range client.Checkpoints() {
		past.Log.Notes = append(past.Log.Notes, output.Note{Off: c.Off, Text: c.Blob})
	}
	for _, c := range client.Screens() {
		past.Log.Screens = append(past.Log.Screens, output.Note{Off: c.Off, Text: c.Blob})
	}
	if err := s.pool.Adopt(s.ctx, held{client, term.ID(id)}, past); err != nil {
		return err
	}
	s.adopted(term.ID(id))
	return nil
}

// removeScripts removes the scripts of shells that are gone.
func (s *holders) removeScripts(alive []string) {
	entries, err := os.ReadDir(s.scripts)
	if err != nil {
		return // most likely there are none
	}
	for _, e := range entries {
		if !slices.Contains(alive, e.Name()) {
			_ = os.RemoveAll(filepath.Join(s.scripts, e.Name()))
		}
	}
}

// LeftRunning returns the ids of the terminals that run although no daemon does; the
// error is a *RunningError if a daemon runs. A holder that does not answer within a
// second counts as running.
func LeftRunning(d dirs.Dirs) ([]string, error) {
	ids, err := holder.List(holdersDir(d))
	if len(ids) == 0 || err != nil {
		return nil, err
	}
	looks.Lock()
	defer looks.Unlock()
	lock, err := lockDaemon(d)
	if err != nil {
		return nil, err
	}
	opts, err := holderOptions(d)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	var wg sync.WaitGroup
	exited := make([]bool, len(ids))
	for i, id := range ids {
		wg.Go(func() { exited[i] = hasExited(opts, id) })
	}
	wg.Wait()
	var running []string
	for i, id := range ids {
		if !exited[i] {
			running = append(running, id)
		}
	}
	return running, lock.Close()
}

// hasExited reports whether a holder stays only for processes that its child has left.
func hasExited(o holder.Options, id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := holder.Dial(ctx, o, id)
	if err != nil {
		return errors.Is(err, holder.ErrGone)
	}
	defer c.Close()
	at, _ := c.ExitedAt()
	return !at.IsZero()
}

// LeftDead returns how many terminals' holders were killed and have left their sockets;
// the next daemon removes them.
func LeftDead(d dirs.Dirs) (int, error) { return holder.Dead(holdersDir(d)) }

// Ended lists the processes that EndLeftRunning has ended, and those that it has not.
type Ended struct {
	Terminals int    // number of terminals that ran
	Unread    int64  // bytes that these terminals had printed and no daemon had received
	Agents    int    // number of agents' exited terminals that had left processes running
	Left      []Left // processes that continue
}

// Left tells of processes that an exited terminal of the person has left running.
type Left struct {
	Name      string // of the terminal
	Processes int
	id        term.ID
}

// EndLeftRunning ends the terminals that no daemon serves, with everything in them, and
// lists them. It also ends the processes that agents' exited terminals have left running;
// those of the person's exited terminals continue, as when a daemon ends. Undelivered
// output does not delay it. It waits for a daemon that is about to end, and keeps one
// from starting until it returns. Errors: a *RunningError if one runs, a *LockError,
// ctx's, or the processes that remain.
func EndLeftRunning(ctx context.Context, d dirs.Dirs) (Ended, error) {
	ids, err := holder.List(holdersDir(d))
	if len(ids) == 0 && err == nil {
		n, err := holder.EndStaying(ctx, holdersDir(d))
		return Ended{Agents: n}, err
	}
	if err != nil {
		return Ended{}, err
	}
	lock, err := waitLock(ctx, d, false)
	if err != nil {
		return Ended{}, err
	}
	defer lock.Close()
	opts, err := holderOptions(d)
	if err != nil {
		return Ended{}, err
	}
	_ = os.Remove(adoptedPath(d)) // the next daemon adopts none of their panes again
	var all Ended
	if all.Agents, err = holder.EndStaying(ctx, holdersDir(d)); err != nil {
		return all, err
	}
	ended, errs := make([]Ended, len(ids)), make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			if ended[i], errs[i] = endHolder(ctx, opts, id); errs[i] != nil {
				errs[i] = fmt.Errorf("end %s: %w", id, errs[i])
			}
		})
	}
	wg.Wait()
	for i, e := range ended {
		if errs[i] == nil {
			all.Terminals += e.Terminals
			all.Unread += e.Unread
			all.Agents += e.Agents
			all.Left = append(all.Left, e.Left...)
		}
	}
	_, err = holder.EndStaying(ctx, holdersDir(d)) // of the holders that were just ended
	for i := range all.Left {                      // EndStaying may have ended some: those of a terminal that an agent has given to the person
		all.Left[i].Processes = len(term.Leftover(all.Left[i].id))
	}
	all.Left = slices.DeleteFunc(all.Left, func(l Left) bool { return l.Processes == 0 })
	return all, errors.Join(append(errs, err)...)
}

// endHolder ends one terminal and its holder. It reads and drops the child's remaining
// output, which could otherwise block in a full log.
func endHolder(ctx context.Context, o holder.Options, id string) (Ended, error) {
	c, err := holder.Dial(ctx, o, id)
	if errors.Is(err, holder.ErrGone) {
		return Ended{}, nil
	}
	if err != nil {
		return Ended{}, err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer c.Close()
	var e Ended
	name, owner := term.Recorded(c.Meta())
	switch exited, _ := c.ExitedAt(); {
	case exited.IsZero():
		e.Terminals = 1
	case owner == term.User:
		e.Left = []Left{{Name: cmp.Or(name, id), id: term.ID(id)}}
		return e, c.Forget(ctx)
	case c.Left() > 0, len(term.Leftover(term.ID(id))) > 0:
		e.Agents = 1
	}
	if err := errors.Join(c.Keep(holder.NoOffset), c.StreamFrom(c.End())); err != nil {
		return e, err
	}
	reading.Go(func() { dropOutput(c) })
	if err := c.Kill(ctx, killGrace); err != nil {
		return e, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	c.Wait()
	if !stop() {
		return e, ctx.Err()
	}
	if e.Terminals > 0 {
		e.Unread = c.End() - c.Taken()
	}
	return e, c.Forget(ctx)
}

// dropOutput reads until the end of output or of the connection.
func dropOutput(c *holder.Client) {
	buf := make([]byte, 32<<10)
	for {
		_, err := c.Read(buf)
		var gap *holder.GapError
		if err != nil && !errors.As(err, &gap) {
			return
		}
	}
}

// killGrace is the time between TERM and KILL for endHolder, which reads no
// configuration.
const killGrace = 2 * time.Second
