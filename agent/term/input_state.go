package term

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tether/agent/command"
	"tether/internal/change"
	"tether/internal/clip"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/screen"
	"tether/vocab"
)

// evidence has the facts about a terminal that has not printed for quietAfter.
type evidence struct {
	look   pty.Look
	looked bool          // look is known
	prompt bool          // the cursor stands behind text
	alt    bool          // the alternate screen is shown
	dark   bool          // the cursor is hidden
	rest   time.Duration // without output and input
	shell  bool          // a shell's marks say that it waits for a command
	busy   bool          // a shell's marks say that it runs a command
	own    bool          // the process group in the foreground is that of the terminal's own program
	front  []string      // arguments of the leader of the foreground's process group
	reader []string      // arguments of the process that waits for the keyboard
}

// relays carry keys to programs elsewhere, whose state is unknown here.
var relays = []string{"ssh", "mosh-client", "et", "telnet", "docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "incus", "machinectl", "wsl", "sudo", "doas", "pkexec", "run0", "tether"}

// judge returns the state of a terminal that does not print. It depends on e alone;
// docs/AWAITING.md has the rules.
func (e *evidence) judge() vocab.InputState {
	waits := e.look.Reading.Waits
	switch {
	case e.looked && e.look.Secret() && waits != proc.WaitsNot:
		return vocab.InputSecret
	case e.shell:
		return vocab.InputQuiet
	case e.alt:
		return vocab.InputFullScreen
	case !e.looked:
		return vocab.InputUnknown
	case e.isShell():
		return vocab.InputQuiet
	case waits == proc.WaitsNot, waits == proc.WaitsUnknown && !e.prompt:
		return vocab.InputQuiet
	case waits == proc.WaitsUnknown:
		return vocab.InputUnknown
	case !e.look.Lines && e.isRelay(): // keys are passed on to an unknown reader
		if e.prompt {
			return vocab.InputUnknown
		}
		return vocab.InputQuiet
	case e.look.Reading.Timed && (e.dark || e.rest < timedAfter): // it will continue by itself, as a progress display does
		return vocab.InputQuiet
	case e.prompt, e.look.Reading.Alone:
		return vocab.InputAwaiting
	}
	return vocab.InputQuiet
}

// isShell reports whether a shell that reads commands is in the foreground; its prompt is
// not a question. A shell whose marks say that it runs a command reads input for that
// command, such as its builtin read.
func (e *evidence) isShell() bool {
	return !(e.busy && e.own) && command.Takes(e.front) == command.TakesLines && !e.isRelay()
}

func (e *evidence) isRelay() bool {
	return e.look.Reading.Relays || len(e.reader) > 0 && slices.Contains(relays, strings.TrimPrefix(filepath.Base(e.reader[0]), "-"))
}

// lookAfter are the times without output and input after which the state of a terminal is
// examined. After the last of them it is examined only when somebody asks, until there is
// output or input again, or when the last look had no answer, as on a busy machine.
// The later ones find programs that read only some time after their prompt, such as npm
// init.
var lookAfter = [...]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second}

// lateAfter is when a terminal is examined again after a look without an answer.
const lateAfter = 2 * time.Second

// timedAfter is how long a program that waits for the keyboard for a limited time must
// print nothing before it counts as waiting for input: programs that show their progress
// print each second.
const timedAfter = 3 * time.Second / 2

// quietAfter is how long a terminal still counts as running after its last output.
const quietAfter = 500 * time.Millisecond

// lookAgain is how long the result of a look is used again.
const lookAgain = 200 * time.Millisecond

// attention is the state of input and its detection. Guarded by the terminal's mutex,
// except for turn.
type attention struct {
	input   vocab.Keyboard
	changed change.Signal // raised when input, or the terminal's readiness, changes
	timer   *time.Timer   // runs attend; nil before the first output
	armed   bool          // the timer fires soon: more output does not set it anew
	looked  time.Time     // when the last look ended
	late    bool          // the last look had no answer from the holder in time
	turn    chan struct{} // 1 slot: one look at a time

	alt, dark bool  // whether the alternate screen is shown and the cursor is hidden, at modesTo
	modesTo   int64 // raw offset up to which the output was searched for modes
}

// stirLocked records that there was output or input.
func (t *Terminal) stirLocked() {
	a := &t.attention
	switch {
	case a.armed || t.log.Restoring() || t.ending.exit != nil:
		return
	case a.timer == nil:
		a.timer = time.AfterFunc(lookAfter[0], t.attend)
	default:
		a.timer.Reset(lookAfter[0])
	}
	a.armed = true
}

// watchInput starts the timer of looks, even if the terminal prints nothing.
func (t *Terminal) watchInput() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stirLocked()
}

// stopAttendingLocked stops looking, and tells waiting callers that there is no state any
// more.
func (t *Terminal) stopAttendingLocked() {
	if t.attention.timer != nil {
		t.attention.timer.Stop()
	}
	t.setInputLocked(vocab.Keyboard{})
}

// answeredLocked ends a question if p has Enter, Ctrl-C or Ctrl-D.
func (t *Terminal) answeredLocked(p []byte) {
	if t.attention.input.Input.Awaits() && bytes.ContainsAny(p, "\r\n\x03\x04") {
		t.setInputLocked(vocab.Keyboard{Input: vocab.InputRunning, InputSince: time.Now()})
	}
}

func (t *Terminal) setInputLocked(in vocab.Keyboard) {
	a := &t.attention
	if a.input == in {
		return
	}
	told := a.input.Input != in.Input || a.input.Prompt != in.Prompt
	a.input = in
	if told {
		a.changed.Raise()
	}
}

// attend examines the state when the timer fires.
func (t *Terminal) attend() {
	t.mu.Lock()
	if t.ending.exit != nil {
		t.mu.Unlock()
		return
	}
	rest := t.restLocked()
	if rest < lookAfter[0] {
		if time.Since(t.activity.typed) >= quietAfter { // otherwise the output may be an echo
			t.printsLocked()
		}
		t.attention.timer.Reset(lookAfter[0] - rest)
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	t.lookNow()
	t.mu.Lock()
	defer t.mu.Unlock()
	rest = t.restLocked()
	for _, after := range lookAfter {
		if left := after - rest; left > 0 {
			t.attention.timer.Reset(left)
			t.attention.armed = left <= time.Second
			return
		}
	}
	if t.attention.late {
		t.attention.timer.Reset(lateAfter)
		return
	}
	t.attention.armed = false
}

// restLocked returns how long ago the last output or input was.
func (t *Terminal) restLocked() time.Duration { return time.Since(t.activity.last(t.origin.started)) }

func (t *Terminal) printsLocked() {
	if t.attention.input.Input != vocab.InputRunning {
		t.setInputLocked(vocab.Keyboard{Input: vocab.InputRunning, InputSince: time.Now()})
	}
}

// lookNow examines the state and records it, unless there is output meanwhile.
func (t *Terminal) lookNow() {
	t.attention.turn <- struct{}{}
	defer func() { <-t.attention.turn }()
	t.mu.Lock()
	last := t.activity.last(t.origin.started)
	if time.Since(t.attention.looked) < lookAgain && t.attention.looked.After(last.Add(quietAfter)) {
		t.mu.Unlock()
		return
	}
	e := t.evidenceLocked()
	e.rest = time.Since(last)
	tail, size := t.tailLocked()
	t.mu.Unlock()
	prompt := clip.Text(screen.BeforeCursor(tail, int(size.Cols), int(size.Rows)), maxPrompt)
	e.prompt = prompt != ""
	t.lookInto(&e)
	in := vocab.Keyboard{Input: e.judge(), InputSince: last}
	if in.Input == vocab.InputAwaiting {
		in.Prompt = prompt
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.activity.last(t.origin.started).Equal(last) && t.ending.exit == nil {
		t.attention.looked, t.attention.late = time.Now(), e.look.Late
		if was := t.attention.input; was.Input == in.Input && in.Input.Awaits() {
			in = was // typing does not end a question
		}
		t.setInputLocked(in)
	}
}

// looker is a PTY whose state the system reports.
type looker interface{ Look() (pty.Look, error) }

// lookInto adds to e what the system reports.
func (t *Terminal) lookInto(e *evidence) {
	l, ok := t.pty.(looker)
	if !ok || t.origin.adopted != nil { // the pane's own terminal is the multiplexer's
		return
	}
	look, err := l.Look()
	if err != nil {
		return
	}
	e.look, e.looked, e.own = look, true, look.Front == t.pty.Pid()
	e.front, e.reader = proc.Argv(look.Front), proc.Argv(look.Reading.Pid)
}

// evidenceLocked returns the facts that follow from the output.
func (t *Terminal) evidenceLocked() evidence {
	a, running := &t.attention, t.log.Running()
	t.findModesLocked()
	return evidence{alt: a.alt, dark: a.dark, shell: t.log.Detected() && running == nil, busy: running != nil}
}

// Input examines the terminal's state of input, for a few milliseconds, and returns a
// channel that is closed when that may have changed. An exited terminal has none. The
// prompt is in the actor's view.
func (h Handle) Input() (vocab.Keyboard, <-chan struct{}) {
	t := h.t
	t.mu.Lock()
	looks := t.ending.exit == nil && t.restLocked() >= quietAfter
	t.mu.Unlock()
	if looks {
		t.lookNow()
	}
	return h.LastInput()
}

// LastInput returns the result of the last look, without a new one.
func (h Handle) LastInput() (vocab.Keyboard, <-chan struct{}) {
	if h.allow(OpRead) != nil {
		return vocab.Keyboard{}, nil
	}
	in, changed := h.t.lastInput()
	if in.Prompt != "" {
		in.Prompt = h.Redact(in.Prompt)
	}
	return in, changed
}

func (t *Terminal) lastInput() (vocab.Keyboard, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := t.attention.input
	switch {
	case t.ending.exit != nil:
		return vocab.Keyboard{}, t.attention.changed.Next()
	case in.Input == "", t.restLocked() < quietAfter && time.Since(t.activity.typed) >= quietAfter && in.Input != vocab.InputRunning:
		in = vocab.Keyboard{Input: vocab.InputRunning, InputSince: t.activity.last(t.origin.started)}
	}
	return in, t.attention.changed.Next()
}

const (
	promptTail = 8 << 10 // bytes of output from which the line of the cursor is made
	maxPrompt  = 200     // bytes
)

// tailLocked returns the last promptTail bytes of the output, from the start of a line on
// if there is one, and the terminal's size.
func (t *Terminal) tailLocked() ([]byte, Size) {
	log := t.log
	from := max(log.End()-promptTail, log.Start())
	tail := make([]byte, log.End()-from)
	tail = tail[:log.ReadAt(tail, from)]
	if i := bytes.IndexByte(tail, '\n'); from > 0 && i >= 0 {
		tail = tail[i+1:]
	}
	return tail, t.log.Size()
}

// Private modes that switch between the main and the alternate screen, and that hide the
// cursor when reset (xterm's control sequences).
var (
	altModes   = [][]byte{[]byte("\x1b[?1049"), []byte("\x1b[?1047"), []byte("\x1b[?47")}
	cursorMode = [][]byte{[]byte("\x1b[?25")}
)

// findModesLocked searches the output since the last call for the last switches of the
// screen and the cursor.
func (t *Terminal) findModesLocked() {
	const longest = 16 // bytes of a switch: the last search may have ended within one
	a, log := &t.attention, t.log
	from := max(a.modesTo-longest, log.Start())
	first, second := log.Bytes(from)
	seam := slices.Concat(first[max(len(first)-longest, 0):], second[:min(longest, len(second))])
	for _, piece := range [][]byte{first, seam, second} {
		if on, found := lastSwitch(piece, altModes); found {
			a.alt = on
		}
		if on, found := lastSwitch(piece, cursorMode); found {
			a.dark = !on
		}
	}
	a.modesTo = log.End()
}

// lastSwitch returns whether the last of these modes in p was switched on.
func lastSwitch(p []byte, modes [][]byte) (on, found bool) {
	at := -1
	for _, mode := range modes {
		for i := bytes.Index(p, mode); i >= 0; {
			rest := p[i+len(mode):]
			if end := bytes.IndexAny(rest[:min(len(rest), 16)], "hl"); end >= 0 && i > at && len(bytes.Trim(rest[:end], "0123456789;")) == 0 {
				at, on, found = i, rest[end] == 'h', true
			}
			next := bytes.Index(rest, mode)
			if next < 0 {
				break
			}
			i += len(mode) + next
		}
	}
	return on, found
}
