package pty

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/windows"

	"tether/platform/proc"
)

// PTY is a running program and its pseudo-console. Its methods may be called from several
// goroutines, but Read and WaitReadable only from one at a time. It holds two pipes, a
// job, and a goroutine with a thread that waits for the program.
//
//	running ──program ended──▶ background ──nothing left, quiet──▶ console ended, Read returns io.EOF
//	   └────────────────── Close: hang-up, drained, everything given back ──────────────────▶
type PTY struct {
	// Set once by Start.
	console *console
	in      *os.File // to the console
	reader  reader
	job     *proc.Job
	agent   *proc.Job // nil if the program is not an agent's
	pid     int
	began   time.Time
	exited  chan struct{} // closed by watch when exit is set
	closed  chan struct{} // closed by Close

	exit   Exit        // written by watch before it closes exited
	killed atomic.Bool // Kill has ended the job

	typing sync.Mutex // one Write at a time; Close ends it
	enter  enter

	mu    sync.Mutex
	size  Size        // the latest given to Resize
	again *time.Timer // repeats an early Resize
}

// CanFeed reports whether this system supports Command.Feed. Whether a program on a
// pseudo-console can have one standard handle of its own and two of the console could not
// be tried here.
const CanFeed = false

// MaxLine is how many bytes a terminal in line mode keeps of a line before its end; a
// console has no such bound.
const MaxLine = math.MaxInt32

// Start runs c on a new pseudo-console, in its own job; with proc.AgentTag in its
// environment, that is within the agent's job. The program inherits no handles, and
// Ctrl+C works even if this process ignores it. Only SystemRoot is added to the
// environment if it is missing. cmd.exe runs batch files; see batchLine for their
// arguments. The caller must call Close. An error is a *StartError.
func Start(c Command) (*PTY, error) {
	if c.Feed {
		return nil, &StartError{What: "input", Err: errors.ErrUnsupported}
	}
	path, err := c.check()
	if err != nil {
		return nil, err
	}
	line, err := c.line(path)
	if err != nil {
		return nil, &StartError{What: "program", Name: c.Path, Err: err}
	}
	p, theirs, err := open(c.Size.orDefault())
	if err != nil {
		return nil, &StartError{What: "terminal", Err: err}
	}
	p.agent, err = agentJob(c.Env)
	var process windows.Handle
	if err == nil {
		process, err = p.spawn(c, path, line)
	}
	theirs.close() // not before: the console opens its own when it has come up, which the program waits for
	if err != nil {
		p.dispose()
		closeJobs(p.job, p.agent)
		return nil, err
	}
	p.began = time.Now()
	released := p.console.release()
	go p.watch(process, released)
	// A program that was not killed may leave others behind which live on, and which a
	// later Kill must find: the job stays until nobody can call it.
	job, agent := p.job, p.agent
	runtime.AddCleanup(p, func(struct{}) { closeJobs(job, agent) }, struct{}{})
	return p, nil
}

func closeJobs(job, agent *proc.Job) {
	_ = job.Close()
	if agent != nil {
		_ = agent.Close()
	}
}

// agentJob is the job of the agent whose mark is in the environment, nil where there is
// no mark, or this process is in that job, which its children are then, too.
func agentJob(env []string) (*proc.Job, error) {
	principal, _ := lookupFold(env, proc.AgentVar)
	if principal == "" {
		return nil, nil
	}
	job, err := proc.AgentJob(principal)
	if err != nil {
		return nil, &StartError{What: "terminal", Err: err}
	}
	if pids, err := job.Pids(); err != nil || slices.Contains(pids, os.Getpid()) {
		return nil, errors.Join(err, job.Close())
	}
	return job, nil
}

// line is the command line for the program at path.
func (c Command) line(path string) (string, error) {
	args := c.Args
	if len(args) == 0 {
		args = []string{c.Path}
	}
	if isBatch(path) {
		return batchLine(path, args[1:])
	}
	return commandLine(path, args)
}

// ends are the handles of the pipes that the console has.
type ends struct{ in, out windows.Handle }

func (e ends) close() {
	_ = windows.CloseHandle(e.in)
	_ = windows.CloseHandle(e.out)
}

// open makes the console with its pipes, and the job.
func open(s Size) (*PTY, ends, error) {
	p := &PTY{size: s, exited: make(chan struct{}), closed: make(chan struct{})}
	in, theirIn, err := pipe(windows.PIPE_ACCESS_OUTBOUND, windows.GENERIC_READ)
	if err != nil {
		return nil, ends{}, err
	}
	out, theirOut, err := pipe(windows.PIPE_ACCESS_INBOUND, windows.GENERIC_WRITE)
	if err != nil {
		in.Close()
		_ = windows.CloseHandle(theirIn)
		return nil, ends{}, err
	}
	theirs := ends{theirIn, theirOut}
	p.in = in
	err = p.reader.init(out)
	if err == nil {
		p.job, err = proc.NewJob()
	}
	if err == nil {
		p.console, err = newConsole(s, theirs.in, theirs.out)
	}
	if err != nil {
		in.Close()
		out.Close()
		theirs.close()
		if p.job != nil {
			_ = p.job.Close()
		}
		return nil, ends{}, err
	}
	return p, theirs, nil
}

// Pid returns the program's process id. After the program has ended, the id may belong to
// another process.
func (p *PTY) Pid() int { return p.pid }

// Write types b. Enter is "\r"; a "\n" within a text is made Enter, see enter. It blocks
// while the console does not read; Close ends it.
func (p *PTY) Write(b []byte) (int, error) {
	p.typing.Lock()
	defer p.typing.Unlock()
	n, err := p.in.Write(p.enter.feed(b))
	switch {
	case err == nil:
		return len(b), nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
		return min(n, len(b)), os.ErrClosed
	}
	select {
	case <-p.closed: // the console has ended before its pipe was closed
		return min(n, len(b)), os.ErrClosed
	default:
	}
	return min(n, len(b)), fmt.Errorf("write terminal: %w", err)
}

// settle is how long after the start of a program Windows may lose a change of size
// (microsoft/terminal #10400).
const settle = time.Second

// Resize changes the size and tells the programs on the console. Both dimensions must be
// at least 1; Windows does with 2 to 1000 columns and 1 to 1000 rows, others become the
// nearest. After Close it returns os.ErrClosed.
func (p *PTY) Resize(s Size) error {
	if s.Cols == 0 || s.Rows == 0 {
		return fmt.Errorf("resize terminal to %d columns and %d rows: must be at least 1", s.Cols, s.Rows)
	}
	select {
	case <-p.closed:
		return fmt.Errorf("resize terminal: %w", os.ErrClosed)
	default:
	}
	if err := p.console.resize(s); err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = s
	if early := settle - time.Since(p.began); early > 0 && p.again == nil {
		p.again = time.AfterFunc(early, p.repeatSize)
	}
	return nil
}

func (p *PTY) repeatSize() {
	p.mu.Lock()
	s := p.size
	p.mu.Unlock()
	_ = p.console.resize(s) // it worked before, or the console has ended
}

// Close gives the terminal up and wakes a waiting Read, WaitReadable and Write, which
// return os.ErrClosed. Programs still on it get a hang-up, which ends most of them;
// programs without a console continue, unless Kill is called. It does not wait for that.
// Wait stays usable. A second Close does nothing.
func (p *PTY) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return nil
	default:
	}
	close(p.closed)
	if p.again != nil {
		p.again.Stop()
	}
	_ = p.in.SetWriteDeadline(time.Unix(1, 0))
	p.reader.wake()
	go p.dispose()
	if err := p.job.Spare(); err != nil {
		return fmt.Errorf("close terminal: %w", err)
	}
	return nil
}

// drainTime bounds how long discarding the rest of the output may take.
const drainTime = 5 * time.Second

// dispose ends the console and then closes the pipes, in this order: with its output not
// read the console may hang, and with its pipe closed it may end its programs in the
// middle of a word.
func (p *PTY) dispose() {
	go p.console.close()
	p.reader.drain(drainTime)
	_ = p.in.Close()
	_ = p.reader.out.Close()
	<-p.console.closed
}
