package adopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"tether/internal/clip"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/screen"
)

// reader writes what a pane of tmux shows and prints.
type reader struct {
	socket, pane string
	pid          int // of the pane's first process
	server       proc.ID
	typed        bool
	pictured     Pane // the pane if only pictures of it are told; otherwise zero
	again        bool // an earlier reader of the pane has ended
	nonce        string
	hub          *hub
	gone         <-chan struct{} // closed when nobody wants the pane any more
	out          io.Writer

	keyed atomic.Pointer[view] // that gets what is typed

	// Owned by run.
	v      *view
	buf    []byte // not written yet; it is written before the reader waits
	err    error  // of out
	state  *state // of the last picture
	shown  bool   // a picture was written
	redraw bool   // a picture must be written before output
	moved  bool   // the screen must be drawn anew, since its size has changed
	paused bool   // tmux has paused the pane
	unsure bool   // the next output may begin within a character
	check  bool   // the pane may have moved or ended
	tail   []byte // the last bytes of the output, as far as they are known
	dir    string
	size   pty.Size
	window string // its id
	news   bool   // something was printed since the last look
	looked time.Time
	dead   time.Time // when tmux first said that the program has ended
}

// errLost says that the pane cannot be followed where it was.
var errLost = errors.New("the pane is not in its session any more")

// endedError says that the pane's program has ended.
type endedError struct {
	status  int
	unknown bool // tmux does not say the status
}

func (e *endedError) Error() string {
	return fmt.Sprintf("the pane's program has ended with status %d", e.status)
}

// Times of a reader.
const (
	lookIdle  = 10 * time.Second // at least: tmux 3.2 does not tell that a pane is in another session now
	lookEvery = 2 * time.Second  // how often it looks for a new directory and for the program's end
	retryMost = 5 * time.Second  // longest wait before it joins a session again
	retryMany = 30               // attempts without a picture

	statusWithin = time.Second // for tmux to learn the status of a program that has ended
)

// pictures draws the pane until it has ended.
func (r *reader) pictures() int {
	from, _ := tellerOf(r.pictured)
	if err := repeat(context.Background(), r.out, from, r.pictured, r.nonce); err != nil {
		return 1 // the terminal has gone
	}
	return r.end("the pane has ended")
}

// run follows the pane until it has ended, and returns the status to exit with.
func (r *reader) run() int {
	wait := retryMost / 32
	for failures := 0; failures < retryMany; failures++ {
		session, there, err := r.find()
		if !there && err == nil {
			return r.end("the pane has ended")
		}
		if err == nil {
			before := time.Now()
			err = r.follow(session)
			if time.Since(before) > retryMost {
				failures, wait = 0, retryMost/32
			}
		}
		ended := (*endedError)(nil)
		switch {
		case r.err != nil || errors.Is(err, errGone):
			return 1 // the terminal has gone
		case errors.As(err, &ended) && ended.unknown:
			return r.end("the pane has ended")
		case errors.As(err, &ended):
			return ended.status
		case !r.serverRuns():
			return r.end("the tmux server has ended")
		}
		select {
		case <-time.After(wait):
		case <-r.gone:
			return 1
		}
		wait = min(2*wait, retryMost)
	}
	return 1
}

func (r *reader) end(why string) int {
	r.buf = append(r.buf, "\x1b[m\r\n["+why+"]\r\n"...)
	r.flush()
	return 0
}

// find returns the session of the pane if it is still the same pane.
func (r *reader) find() (session string, there bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	panes, err := listServer(ctx, "tmux", r.socket, r.pane)
	if err != nil {
		return "", r.serverRuns(), err
	}
	for _, p := range panes {
		if p.Pid == r.pid && p.Server.Pid == r.server.Pid {
			return p.session, r.serverRuns(), nil
		}
	}
	return "", false, nil
}

func (r *reader) serverRuns() bool {
	info, err := proc.Lookup(r.server.Pid)
	return err == nil && info.Start == r.server.Start && !info.Zombie
}

func runs(pid int) bool {
	info, err := proc.Lookup(pid)
	return err == nil && !info.Zombie
}

// follow writes what the pane prints in the session, until an error.
func (r *reader) follow(session string) error {
	v, err := r.hub.join(session, r.pane, r.gone, r.flush)
	if err != nil {
		return err
	}
	defer r.hub.leave(v)
	r.v, r.redraw, r.paused, r.check, r.tail, r.window = v, true, false, false, nil, ""
	r.keyed.Store(v)
	if r.shown || r.again {
		r.gap()
	}
	for {
		if err := r.settle(); err != nil {
			return err
		}
		e, ok, err := v.within(time.After(lookEvery))
		if err != nil {
			return err
		}
		if !ok {
			r.check = r.check || r.news || !runs(r.pid) || time.Since(r.looked) > lookIdle
			continue
		}
		r.handle(e)
	}
}

// keys reads what is typed, and sends it to the pane if it may.
func (r *reader) keys(in io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		if v := r.keyed.Load(); n > 0 && v != nil && r.typed {
			_ = v.typeKeys(buf[:n]) // a client that has ended: run joins another one
		}
		if err != nil {
			return
		}
	}
}

// settle does what events have made necessary.
func (r *reader) settle() error {
	if r.news && time.Since(r.looked) > lookEvery {
		r.check = true
	}
	for r.redraw || r.moved || r.check {
		if r.redraw || r.moved {
			if err := r.seam(); err != nil {
				return err
			}
			continue
		}
		if err := r.look(); err != nil {
			return err
		}
	}
	return r.err
}

// handle follows an event. It asks tmux nothing, so that it may be called while a reply
// is awaited.
func (r *reader) handle(e event) {
	switch e.kind {
	case kindOutput:
		r.news = true
		if r.unsure && !utf8.RuneStart(e.data[0]) {
			r.redraw = true
		}
		r.unsure = false
		if !r.redraw { // otherwise the picture will show it
			r.buf = append(r.buf, e.data...)
		}
		r.tail = last(r.tail, e.data)
	case kindPause:
		if e.pane != r.pane {
			return
		}
		if !r.redraw {
			r.gap()
		}
		r.redraw, r.paused = true, true
	case kindLayout:
		window, layouts, _ := strings.Cut(string(e.data), " ")
		if window != r.window {
			return
		}
		size, ok := sizeIn(layouts, r.pane)
		if ok {
			r.resize(size)
		}
		r.check = r.check || !ok
	case kindWindow:
		r.check = r.check || string(e.data) == r.window
	}
}

// look finds out where the pane is, whether its program has ended, and its directory.
func (r *reader) look() error {
	r.check, r.news, r.looked = false, false, time.Now()
	a, err := r.v.ask(r.handle, "list-panes -s -t '"+r.v.c.session+"' -f '"+onlyPane(r.pane)+"' -F '#{pane_id} #{window_id} #{pane_width} #{pane_height} #{pane_dead} 0#{pane_dead_status} 0#{pane_dead_signal} #{pane_pid}'",
		"display-message -p -t '"+r.pane+"' '#{pane_current_path}'")
	if err != nil {
		return err
	}
	for _, l := range a.parts[0].lines {
		f := strings.Fields(string(l))
		if len(f) != 8 || f[0] != r.pane || f[7] != strconv.Itoa(r.pid) {
			continue // another program may have taken the pane (respawn-pane)
		}
		var n [5]int
		for i := range n {
			n[i], _ = strconv.Atoi(f[i+2])
		}
		if n[2] != 0 {
			if r.dead.IsZero() {
				r.dead = time.Now()
			}
			// tmux knows the end of the output before that of the program, and tmux 3.3
			// may never learn the latter.
			unknown := f[5] == "0" && f[6] == "0"
			if unknown && time.Since(r.dead) < statusWithin {
				return nil
			}
			if n[4] > 0 {
				n[3] = 128 + n[4]
			}
			return &endedError{n[3] & 0xff, unknown}
		}
		r.window = f[1]
		r.resize(sizeOf(n[0], n[1]))
		r.directory(a.parts[1].text())
		return nil
	}
	return errLost
}

// maxSeams bounds the attempts to find a place where the picture and the output meet.
const maxSeams = 50

// soon is how long the reader waits for output, to see whether it begins within a
// character.
const soon = 20 * time.Millisecond

// seam writes a picture of the pane, which ends exactly where the next output begins.
//
// tmux executes one line of commands at once, without reading the pane. The first picture
// and one after a gap are taken while the pane is paused: whatever comes between its two
// questions is newer. But tmux does not show an unfinished character, which must be known
// from the output before. If that has not been seen, and what comes next begins within a
// character, another picture is taken.
func (r *reader) seam() error {
	for n := range maxSeams {
		redraw, alternate := r.redraw, r.state != nil && r.state.has("alternate_on")
		commands, early, printed := stateCommands(r.pane, alternate), []byte(nil), false
		if redraw {
			if _, err := r.v.ask(r.handle, pauseCommand(r.pane)); err != nil {
				return err
			}
			r.paused, r.tail = false, nil
			commands = append(commands, continueCommand(r.pane))
		}
		a, err := r.v.ask(func(e event) {
			if redraw && e.kind == kindOutput {
				early = append(early, e.data...)
				return
			}
			printed = printed || e.kind == kindOutput
			r.handle(e)
		}, commands...)
		if err != nil {
			return err
		}
		s := parseState(a.parts)
		if s == nil || s.numbers["pane_pid"] != r.pid || s.numbers["pid"] != r.server.Pid {
			return errLost
		}
		r.state = s
		switch {
		case r.paused || s.has("alternate_on") != alternate: // the commands were those for the other screen
		case redraw:
			if done, err := r.begin(early); done || err != nil {
				return err
			}
		case a.mixed && printed: // the picture may be older than what was printed
			if n > maxSeams/2 {
				r.gap()
				r.redraw = true
			}
		default: // every byte before was written
			if len(s.pending) == 0 { // otherwise it has all bytes since the sequence began
				s.pending = unfinished(r.tail)
			}
			r.resize(s.size())
			r.buf, r.moved = append(r.buf, s.redraw()...), false
			return nil
		}
	}
	return errLost
}

// begin writes the picture, and early, which came after it, unless that begins within a
// character which the picture does not have.
func (r *reader) begin(early []byte) (done bool, err error) {
	known := len(r.state.pending) > 0 // it has all bytes since the sequence began
	next := event{kind: kindOutput, data: early}
	if len(early) == 0 && !known {
		if next, err = r.ahead(); err != nil {
			return false, err
		}
	}
	if r.paused || !known && len(next.data) > 0 && !utf8.RuneStart(next.data[0]) {
		return false, nil
	}
	r.picture()
	if r.unsure = !known && len(next.data) == 0; len(next.data) > 0 {
		r.handle(next)
	}
	return true, nil
}

// ahead returns the output that comes soon, if some does.
func (r *reader) ahead() (event, error) {
	for late := time.After(soon); ; {
		e, ok, err := r.v.within(late)
		if !ok || err != nil || e.kind == kindOutput {
			return e, err
		}
		r.handle(e)
	}
}

// last returns the last bytes of the output: as many as an unfinished character has.
func last(tail, more []byte) []byte {
	tail = append(tail, more[max(0, len(more)-utf8.UTFMax+1):]...)
	return tail[max(0, len(tail)-utf8.UTFMax+1):]
}

// unfinished returns the beginning of a character at the end of tail.
func unfinished(tail []byte) []byte {
	for n := 1; n <= len(tail); n++ {
		if rest := tail[len(tail)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRune(rest) {
				return nil
			}
			return rest
		}
	}
	return nil
}

// gapLine stands where output is missing, for whoever reads text.
const gapLine = "[tether: output is missing here]"

// gap says that output is missing here, and ends a sequence that has begun.
func (r *reader) gap() {
	r.buf = append(r.buf, 0x18) // CAN
	r.mark("Gap", "unknown")
	r.buf = append(r.buf, "\x1b[m\r\n"+gapLine+"\r\n"...)
	r.again = false
}

// picture writes the pane's size, title and directory, and then what it shows.
func (r *reader) picture() {
	r.resize(r.state.size())
	if title := printable(r.state.title, maxTitle); title != "" {
		r.buf = append(r.buf, "\x1b]2;"+title+"\a"...)
	}
	r.directory(r.state.dir)
	r.buf = append(r.buf, r.state.draw(r.shown)...)
	r.shown, r.redraw, r.moved, r.check = true, false, false, r.check || r.window == ""
	r.flush()
}

func (r *reader) resize(size pty.Size) {
	if size != r.size && size.Cols > 0 && size.Rows > 0 {
		r.size, r.moved = size, true
		r.mark("Size", fmt.Sprintf("%dx%d", size.Cols, size.Rows))
	}
}

func (r *reader) directory(dir string) {
	if dir != r.dir && filepath.IsAbs(dir) && len(dir) <= maxDir {
		r.dir = dir
		r.mark("Cwd", dir)
	}
}

// Bounds of texts, in bytes.
const (
	maxTitle = 256
	maxDir   = 4096
)

func (r *reader) mark(key, value string) { r.buf = appendMark(r.buf, key, value, r.nonce) }

// appendMark appends a property that only the reader can write, since it has the nonce.
func appendMark(b []byte, key, value, nonce string) []byte {
	b = append(b, "\x1b]633;P;"+key+"="...)
	for _, c := range []byte(value) {
		if c <= ' ' || c == ';' || c == '\\' || c >= 0x7f {
			b = fmt.Appendf(b, "\\x%02x", c)
		} else {
			b = append(b, c)
		}
	}
	return append(b, ";"+nonce+"\a"...)
}

// flush writes what is to be written. It blocks while nobody reads the terminal: output
// then waits in the view.
func (r *reader) flush() {
	if len(r.buf) > 0 && r.err == nil {
		_, r.err = r.out.Write(r.buf)
	}
	r.buf = r.buf[:0]
}

// printable returns text for one line.
func printable(text string, n int) string { return clip.Text(screen.Clean(text), n) }

// sizeIn finds the size of a pane in layouts of tmux, of which the last is the visible
// one: a zoomed pane has another size there. A pane stands in them as COLSxROWS,X,Y,ID.
func sizeIn(layouts, pane string) (size pty.Size, ok bool) {
	for part := range strings.FieldsSeq(layouts) {
		fields := strings.FieldsFunc(part, func(c rune) bool { return strings.ContainsRune(",{}[]", c) })
		for i := 3; i < len(fields); i++ {
			cols, rows, is := strings.Cut(fields[i-3], "x")
			if !is || "%"+fields[i] != pane || strings.Contains(fields[i-1]+fields[i-2], "x") {
				continue
			}
			c, err := strconv.Atoi(cols)
			n, err2 := strconv.Atoi(rows)
			if err == nil && err2 == nil {
				size, ok = sizeOf(c, n), true
			}
		}
	}
	return size, ok
}

// sizeOf returns a size, bounded as that of a picture.
func sizeOf(cols, rows int) pty.Size {
	return pty.Size{Cols: uint16(max(0, min(cols, maxSide))), Rows: uint16(max(0, min(rows, maxSide)))}
}
