package term

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"tether/agent/outward"
	"tether/agent/ring"
	"tether/platform/pty"
	"tether/shellint"
)

// Size is a terminal's size in cells, 1 to 1000 each way.
type Size = pty.Size

// PTY is a running child on a pseudo-terminal. platform/pty implements it;
// so does a holder's client.
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

// OnSlow says what happens to the child when a reader that holds is slow.
type OnSlow uint8

const (
	// ByOwner is what the pool's options say for the terminal's owner.
	ByOwner OnSlow = iota
	// Lag never slows the child: a slow reader loses its place and is told.
	Lag
	// Hold lets the child wait for readers, each time for at most the pool's
	// stall time.
	Hold
)

// Terminal is one child on a pty with its recorded output. All methods may be
// called concurrently. Doors do not get a Terminal but a [Handle].
//
// Goroutines: run owns the child's end; pump is the only one that appends
// output; typist, started on demand, writes input. All end with the terminal.
type Terminal struct {
	// Set at construction.
	id      ID
	name    string
	command []string
	started time.Time
	private bool
	leased  bool
	onSlow  OnSlow
	idle    idleWatch
	pty     PTY
	held    Held // pty, if the child outlives this process
	pool    *Pool

	scanning  shellint.Options // of scanner
	startCwd  string
	door      string
	secrets   []string // values that no host may see
	clipboard bool     // the text has what sets the clipboard

	// Owned by pump, and by run after it.
	scanner  *shellint.Scanner
	result   shellint.Result
	joined   []byte // scratch for text that wraps in the log
	appended bool   // what is being read is in the log

	mu        sync.Mutex // guards what follows, down to the channels of the life cycle
	log       *ring.Log
	charged   int64 // bytes of this terminal in the pool's memory
	released  bool  // forgotten: counts no more
	tracker   shellint.Tracker
	cuts      cutList
	marks     queue[Mark]
	firstMark int64 // sequence number of marks.at(0)
	decided   int64 // raw offset up to which the scanner has judged
	texted    int64 // raw offset up to which the text is known; <= decided
	seen      int64 // texted as readers could see it last
	atRest    bool  // the scanner is, at the end of the log
	lost      int64 // raw bytes that nobody could record
	readers   map[*Reader]struct{}
	title     string
	cwd       string
	size      Size
	owner     Actor
	visible   bool
	promoted  bool
	lentTo    []string
	loans     []Loan      // of lentTo, in the same order
	expiry    *time.Timer // runs expire; nil before the first loan that ends
	exit      *Exit
	detected  bool
	doubt     *time.Timer // runs announce; nil before the first doubt
	commands  queue[Command]
	lineBytes int // sum of the commands' lines
	attached  int
	input     inputQueue
	lastByte  time.Time
	lastInput time.Time
	reason    ExitReason // why it ends; "" while nobody has ended it
	kills     int        // calls of terminate under way
	inRead    bool       // pump waits for the child

	rules *outward.Rules // of the veil; nil before prepare, and if there are none
	veil  *veil          // nil while it is lent to nobody

	keeper   keeper
	memos    map[string]string // by host, see Handle.Remember
	heard    map[string]bool   // hosts that know of the exit
	awaited  map[string]int64  // raw offsets of those who are expected back
	caught   chan struct{}     // closed and nil when the log reaches target: all that was there at the adoption
	target   int64
	recalled map[int]Command // those of before the adoption, until caught

	// Channels of the life cycle, made at construction.
	sizing   chan struct{} // 1 slot, taken by resize: the last mark is the pty's size
	room     chan struct{} // 1 slot; a holding reader moved on
	killed   chan struct{} // closed by Kill: no reader holds any more
	killOnce sync.Once
	pumped   chan struct{} // closed by pump at the end of output
	done     chan struct{} // closed by run after MarkExited

	leaving   chan struct{} // closed by leave
	leaveOnce sync.Once
	left      chan struct{} // closed by run when the child runs on out of the pool's hands
	told      chan struct{} // closed when nobody needs the holder any more
	toldOnce  sync.Once
}

// Info returns a snapshot.
func (t *Terminal) Info() Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.infoLocked()
}

func (t *Terminal) infoLocked() Info {
	i := Info{
		ID: t.id, Name: t.name, Title: cmp.Or(t.title, t.name), Command: slices.Clone(t.command),
		Cwd: t.cwd, StartCwd: t.startCwd, Size: t.size, Owner: t.owner, Visible: t.visible, Promoted: t.promoted, Private: t.private, Leased: t.leased,
		LentTo: slices.Clone(t.lentTo), Loans: slices.Clone(t.loans), Door: t.door, Pid: t.pty.Pid(), Started: t.started,
		CommandDetection: t.detected, Bytes: t.log.End(), Retained: t.log.End() - t.log.Start(),
		Attached: t.attached, Held: t.held != nil, Lost: t.lost, Running: t.runningLocked(t.log.End()),
	}
	if t.exit != nil {
		e := *t.exit
		i.Exit = &e
	}
	return i
}

// Done is closed when the exit was recorded.
func (t *Terminal) Done() <-chan struct{} { return t.done }

// commandList returns the commands still remembered, oldest first.
func (t *Terminal) commandList() []Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Command, t.commands.len())
	for i := range out {
		out[i] = *t.commands.at(i)
		if !out[i].Done {
			out[i].End = t.log.End()
		}
	}
	return out
}

// resize changes the size of the pty and records it. The same size again
// does nothing.
func (t *Terminal) resize(s Size) error {
	if err := checkSize(s); err != nil {
		return err
	}
	t.sizing <- struct{}{}
	defer func() { <-t.sizing }()
	t.mu.Lock()
	same, over := t.size == s, t.exit != nil
	t.mu.Unlock()
	if over {
		return ErrExited
	}
	if same {
		return nil
	}
	if err := t.pty.Resize(s); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exit != nil {
		return ErrExited // meanwhile; nothing may follow that mark
	}
	t.putMarkLocked(Mark{Kind: MarkResized, Off: t.texted, Size: s})
	t.boundLocked()
	t.wakeLocked()
	return nil
}

// condemn notes that the terminal ends, if a may kill it: a promotion comes
// before, and then a may not, or not at all.
func (t *Terminal) condemn(a Actor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := Allow(a, OpKill, t.infoLocked())
	if err == nil && t.exit == nil {
		t.reason = cmp.Or(t.reason, ReasonKilled)
	}
	return err
}

// terminate kills the process tree and waits until the exit was recorded or
// ctx ends. Killing an exited terminal does nothing. The first reason counts.
func (t *Terminal) terminate(ctx context.Context, why ExitReason) error {
	t.mu.Lock()
	t.reason = cmp.Or(t.reason, why)
	t.kills++ // the holder is needed until its Kill has returned
	t.killOnce.Do(func() { close(t.killed) })
	t.needLocked()
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.kills--
		t.tellLocked()
		t.mu.Unlock()
	}()
	select {
	case <-t.done:
		return nil
	default:
	}
	if err := t.pty.Kill(ctx, t.pool.opts.KillGrace); err != nil {
		return err
	}
	select {
	case <-t.done:
		return nil
	case <-t.left:
		return ErrLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withdraw ends the lending to host. It returns whether there was one and how
// many people were attached at that moment: a disposal depends on both.
func (t *Terminal) withdraw(host string) (attached int, was bool) {
	t.mu.Lock()
	if was = t.endLoanLocked(host); was {
		delete(t.memos, host)
		t.arrivedLocked(awaitedHost(host))
		t.needLocked()
		t.expelLocked(host)
		t.tellLocked()
	}
	attached = t.attached
	t.mu.Unlock()
	if was {
		t.changed()
	}
	return attached, was
}

// expelLocked closes the readers of a host: what the child writes from now on
// is none of its business.
func (t *Terminal) expelLocked(host string) {
	for r := range t.readers {
		if r.host == host {
			r.closeLocked()
		}
	}
}

// attach counts a person in (+1) or out (-1).
func (t *Terminal) attach(by int) {
	t.mu.Lock()
	t.attached += by
	for i := 0; i < maxPeople && by > 0; i++ {
		if _, ok := t.awaited[awaitedPerson(i)]; ok {
			t.arrivedLocked(awaitedPerson(i))
			break
		}
	}
	if t.held != nil && t.exit == nil {
		t.staleLocked()
	}
	t.needLocked()
	t.tellLocked()
	t.mu.Unlock()
}
