package term

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tether/agent/answers"
	"tether/agent/loans"
	"tether/agent/output"
	"tether/platform/pty"
	"tether/vocab"
)

// Size is a terminal's size in cells, 1 to 1000 each way.
type Size = pty.Size

// PTY is a running child on a pseudo-terminal. platform/pty implements it; so does a
// holder's client.
type PTY interface {
	// Read returns the child's output, io.EOF after its end.
	Read(p []byte) (int, error)
	// WaitReadable blocks until Read would not.
	WaitReadable() error
	// Write sends input. It blocks while the child does not read.
	Write(p []byte) (int, error)
	Resize(Size) error
	// Wait blocks until the leader was reaped.
	Wait() pty.Exit
	// Kill ends the whole process tree and returns when it is gone.
	Kill(ctx context.Context, grace time.Duration) error
	Pid() int
	// Close releases the pty and unblocks Read and Write.
	Close() error
}

// OnSlow is the effect on the child of a slow reader that asked for ReaderOptions.Hold.
type OnSlow uint8

const (
	// ByOwner is the configured effect for the terminal's owner.
	ByOwner OnSlow = iota
	// Lag makes the child wait for readers at most a tenth of the time, and not while
	// somebody types. A reader that is slower than that loses its place and is told of
	// the gap.
	Lag
	// Hold makes the child wait for readers, each time for at most the pool's stall time.
	Hold
)

// Terminal is one child on a pty with its recorded output. All methods may be called
// concurrently. Doors do not get a Terminal but a [Handle].
//
// Its parts are structs, each in the file of its concern, with its rules. None has a
// lock: methods of parts that mu guards are called under mu, as are methods of Terminal
// whose names end in Locked. Operations on several parts are methods of Terminal.
//
// Goroutines: run waits for the child and records its exit. pump appends output; while it
// waits for output, the goroutine that reads the holder's connection appends in its place
// (takeNow). Others start on demand and end by themselves: writeInput writes queued
// input, saver sends state to the holder, recheckLending checks the lending rules after a
// change of directory.
type Terminal struct {
	id      ID
	pty     PTY
	holder  HolderPTY    // pty, if the child outlives this process, else nil
	pacer   pacer        // holder, if it makes the child wait for readers that may slow it only a little, else nil
	screens screenKeeper // holder, if it keeps screens for the next daemon, else nil
	pool    *Pool

	origin origin // facts of its start
	life   life   // channels for waiting on a step of it

	unpolled int // bytes appended since letOthersRun last started a goroutine; owned by whoever appends

	feeding atomic.Bool // there is a Feeder

	mu        sync.Mutex         // guards the fields below
	log       *output.Log        // the output, and state derived from it
	sizing    chan struct{}      // a lock of one slot that resize takes before mu, so that the last mark is the pty's size
	ownership ownership          // its owner, and who is attached
	holding   holding            // of waiting for readers
	loans     loans.List         // to hosts
	expiry    *time.Timer        // runs expire; nil before the first loan that ends
	input     inputQueue         // typed input that is not yet written
	activity  activity           // when it was last used
	attention attention          // whether it waits for the person
	answering *answers.Answering // who answers what its program asks
	ready     vocab.Readiness    // whether the condition of a declared terminal is met
	ending    ending             // how it ends, why, and who knows
	keeper    keeper             // state in transit to the holder
	share     share              // of the pool's memory
}

func (p *Pool) newTerminal(owner Actor, s Spec, child PTY) *Terminal {
	t := &Terminal{
		id: s.ID, pty: child, pool: p, origin: p.originOf(owner, s), life: newLife(),
		sizing:    make(chan struct{}, 1),
		ownership: ownership{owner: owner, visible: owner.Role == RoleUser},
		holding:   holding{room: make(chan struct{}, 1)},
		ending:    ending{reported: make(chan struct{})},
		keeper:    keeper{keep: output.NoOffset, until: output.NoOffset},
		attention: attention{turn: make(chan struct{}, 1)},
		share:     share{Share: p.memory.NewShare()},
	}
	t.holder, _ = child.(HolderPTY)
	if p, ok := child.(pacer); ok && p.Paces() {
		t.pacer = p
	}
	if k, ok := child.(screenKeeper); ok && k.KeepsScreens() {
		t.screens = k
	}
	t.log = t.newLog(&s)
	t.answering = answers.New(&t.mu, asked{t}, t.log, s.Adopted != nil)
	if s.Attaches {
		t.answering.Expect()
	}
	t.foreseeLocked()
	if len(s.LendTo) > 0 {
		t.prepare()
	}
	for _, host := range s.LendTo {
		loan := loans.Loan{Host: host, Since: t.origin.started}
		for _, to := range s.Audience {
			loan.Audience.Grants = append(loan.Audience.Grants, loans.Grant{To: to})
		}
		for _, port := range s.Ports {
			loan.Ports = append(loan.Ports, vocab.LentPort{Port: port, Auto: port == loans.AutoPort, Since: loan.Since})
		}
		t.loans.Begin(loan)
	}
	t.log.SetLent(!t.loans.Empty())
	return t
}

func (t *Terminal) newLog(s *Spec) *output.Log {
	o := output.Options{
		Limit: t.pool.opts.LogBytes, Size: s.Size, Cwd: s.Cwd, Name: t.origin.name, Scanning: t.origin.scanning, Clipboard: t.origin.clipboard,
		Pane: s.Adopted != nil, Holds: t.origin.onSlow == Hold, IgnoreUnsigned: t.pool.opts.IgnoreUnsigned, Screens: t.screens != nil,
		IsName: t.origin.isProgram, IsHere: t.pool.opts.localHost,
	}
	if t.holder != nil {
		o.NoteEvery = int64(HolderLogBytes(t.pool.opts.LogBytes) / notesPerLog)
	}
	return output.New(&t.mu, printed{t}, o)
}

// Info returns a snapshot.
func (t *Terminal) Info() Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.infoLocked()
}

func (t *Terminal) infoLocked() Info {
	o, end := &t.origin, t.log.End()
	i := Info{
		ID: t.id, Name: o.name, Short: o.short, Command: slices.Clone(o.command), StartCwd: o.cwd, Started: o.started, Door: o.door, Private: o.private, Leased: o.leased, Unsigned: o.unsigned, Port: o.port, Notice: o.notice,
		Title: t.log.Title(), Cwd: t.log.Cwd(), Size: t.log.Size(),
		Owner: t.ownership.owner, Visible: t.ownership.visible, Promoted: t.ownership.promoted, Starter: t.ownership.starter, Attached: t.ownership.attached, Typed: t.activity.person, Interrupted: t.activity.stopped,
		LentTo: t.loans.Hosts(), Loans: t.loans.All(), Pid: t.pid(), Adopted: o.adopted, Outlives: t.holder != nil, Holds: t.origin.onSlow == Hold,
		CommandDetection: t.log.Detected(), Running: t.log.Running(),
		Bytes: end, Retained: end - t.log.Start(), Lost: t.log.Lost(), Readiness: t.ready,
	}
	if t.ending.exit != nil {
		i.Exit = new(*t.ending.exit)
	}
	return i
}

// Done is closed when the exit was recorded.
func (t *Terminal) Done() <-chan struct{} { return t.life.done }

// life has one channel for each step of a terminal's life; each is closed once, when the
// step happens. The channels are made at construction and need no lock. run closes either
// done or left, after pumped was closed.
type life struct {
	killed   chan struct{} // closed by kill: no reader holds the child any more
	killOnce sync.Once
	pumped   chan struct{} // closed by pump at the end of output
	done     chan struct{} // closed by run after MarkExited

	leaving   chan struct{} // closed by leave
	leaveOnce sync.Once
	left      chan struct{} // closed by run, under mu, when the child keeps running outside this pool

	caught chan struct{} // closed when a terminal of an earlier daemon has scanned the output that there was
}

func newLife() life {
	return life{
		killed: make(chan struct{}), pumped: make(chan struct{}), done: make(chan struct{}),
		leaving: make(chan struct{}), left: make(chan struct{}), caught: make(chan struct{}),
	}
}

func (l *life) kill() { l.killOnce.Do(func() { close(l.killed) }) }

func (l *life) leave() { l.leaveOnce.Do(func() { close(l.leaving) }) }

func (l *life) isKilled() bool { return isClosed(l.killed) }

func (l *life) isLeaving() bool { return isClosed(l.leaving) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ID names a terminal for its whole life, across daemon restarts: "pty-" and eight random
// characters of a-z and 2-7.
type ID string

// NewID returns a new random id.
func NewID() ID {
	var b [5]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return ID("pty-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])))
}
