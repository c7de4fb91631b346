package local

import (
	"context"
	"maps"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"tether/agent/command"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/clip"
	"tether/internal/lazyregexp"
	"tether/platform/proc"
	"tether/screen"
)

const (
	maxTypedAudit = 256      // bytes of input that reach the audit log
	maxTypedLine  = 64 << 10 // bytes on a line before it is sent
	maxTyping     = 256      // terminals whose current line is remembered
)

// typing stores the current input lines of agents' terminals.
type typing struct {
	mu    sync.Mutex
	lines map[typedAt]*typedLine
}

// typedAt is where a line is typed: at a terminal, or at the pipe that is its command's
// standard input.
type typedAt struct {
	id   term.ID
	pipe bool
}

// typedLine is the line of one terminal. Callers that type there take turns.
type typedLine struct {
	turn chan struct{} // 1 slot
	text string        // typed but not sent yet
}

func (t *typing) of(at typedAt, gone func(term.ID) bool) *typedLine {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[at]
	if l == nil {
		if len(t.lines) >= maxTyping {
			maps.DeleteFunc(t.lines, func(other typedAt, _ *typedLine) bool { return gone(other.id) })
		}
		if t.lines == nil {
			t.lines = map[typedAt]*typedLine{}
		}
		l = &typedLine{turn: make(chan struct{}, 1)}
		t.lines[at] = l
	}
	return l
}

// typeInto types p into the terminal. An agent's input into its own terminal is judged
// before: whatever of it reaches a shell is a command like any other.
func (a *agentTerminals) typeInto(ctx context.Context, h term.Handle, p []byte) error {
	return a.judged(ctx, h, false, p, func() error { return h.Write(ctx, p) })
}

// judged calls write unless p is refused, which write types or, with pipe, writes to the
// standard input of the terminal's command.
func (a *agentTerminals) judged(ctx context.Context, h term.Handle, pipe bool, p []byte, write func() error) error {
	i := h.InfoAsIs()
	if i.Owner.Role != term.RoleAgent {
		return write()
	}
	line := a.server.typing.of(typedAt{i.ID, pipe}, func(id term.ID) bool {
		other, err := a.server.opts.Access(term.User).Terminal(id)
		return err != nil || other.Info().Exit != nil
	})
	select {
	case line.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-line.turn }()
	t := parseTyped(line.text, string(p))
	if i.Owner == a.access.Actor() {
		if err := a.checkTyped(i, pipe, string(p), t); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	line.text = clip.Marked(t.left, maxTypedLine+1)
	return nil
}

// typed is typed text, divided into lines.
type typed struct {
	lines []string // the sent lines, without their ends
	left  string   // the current, unfinished line
}

// parseTyped adds text to the current line.
func parseTyped(line, text string) typed {
	var t typed
	for _, r := range text {
		switch r {
		case '\r', '\n':
			if stripped := strings.TrimRight(line, `\`); (len(line)-len(stripped))%2 == 1 { // the line continues
				line = line[:len(line)-1]
				continue
			}
			t.lines, line = append(t.lines, line), ""
		case 3: // ^C
			line = ""
		case 4, 12, 26: // ^D, ^L, ^Z do not change it
		default:
			line += string(r)
		}
	}
	t.left = line
	return t
}

// checkTyped refuses input that the rules forbid. At the prompt of a shell, or of what
// may be one, it also refuses input that changes the line invisibly, and input for which
// the person would have to be asked. Any other program that reads the keyboard may be an
// unknown shell: there it refuses only lines that would be denied. Nobody is asked about
// input in another language, such as Python or SQL.
func (a *agentTerminals) checkTyped(i term.Info, pipe bool, text string, t typed) error {
	taker, secret := a.taker(i)
	if base := command.Takes(i.Command); pipe && taker != command.TakesLines && base != command.TakesData {
		taker = base // the foreground need not be what reads the pipe
	}
	if taker == command.TakesData {
		return nil
	}
	shown := clip.Marked(text, maxTypedAudit)
	if secret {
		shown = "[hidden]"
	}
	opts := &a.server.opts
	opts.Policy.Audit(policy.Event{Type: policy.EventInput, Actor: i.Owner, Door: a.door, Terminal: i.ID, Line: shown})
	if opts.Policy.TypingFree(i.Owner) {
		return nil
	}
	request := policy.Request{Door: a.door, Actor: i.Owner, Cwd: i.Cwd, Background: true}
	if taker != command.TakesLines {
		return a.checkLines(i, request, t)
	}
	if pipe {
		text = strings.ReplaceAll(text, "\t", " ") // completes nothing there
	}
	if why := unseen(text); why != "" {
		return a.refuseTyped(i, policy.Decision{Effect: policy.Deny, Rule: "typing.control", Reason: why})
	}
	if len(t.left) > maxTypedLine {
		return a.refuseTyped(i, policy.Decision{Effect: policy.Deny, Rule: "typing.control", Reason: "the line is too long"})
	}
	if err := a.checkLines(i, request, t); err != nil {
		return err
	}
	if request.Line = strings.TrimSpace(strings.Join(t.lines, "\n")); request.Line == "" {
		return nil
	}
	return opts.Policy.Typed(request)
}

// checkLines refuses lines that would be denied, both as they were typed and as a
// terminal that edits lines would send them.
func (a *agentTerminals) checkLines(i term.Info, r policy.Request, t typed) error {
	for _, line := range t.lines {
		forms := []string{screen.Clean(line), screen.Clean(edited(line))}
		if strings.IndexFunc(line, isForeign) >= 0 { // in some locales, these edit the line
			forms = append(forms, strings.FieldsFunc(line, isForeign)...)
		}
		for _, form := range forms {
			if r.Line = strings.TrimSpace(form); r.Line == "" {
				continue
			}
			if d := a.server.opts.Policy.Check(r); d.Effect == policy.Deny {
				return a.refuseTyped(i, d)
			}
		}
	}
	return nil
}

func isForeign(r rune) bool { return r >= utf8.RuneSelf }

func (a *agentTerminals) refuseTyped(i term.Info, d policy.Decision) error {
	a.server.opts.Policy.Audit(policy.Event{Type: policy.EventRefusal, Actor: i.Owner, Door: a.door, Terminal: i.ID, Decision: d, Detail: "typed"})
	return &policy.Refusal{Decision: d, Code: policy.CodeBlocked}
}

// taker says what the foreground program does with typed input. secret reports that the
// program does not echo it.
func (a *agentTerminals) taker(i term.Info) (taker command.Taker, secret bool) {
	base := command.Takes(i.Command)
	f, ok := proc.Front(i.Pid)
	switch {
	case !ok || i.Pid <= 1: // process 1 is never a terminal's child
		return base, false
	case len(f.Argv) > 0:
		front := command.Takes(f.Argv)
		if f.Pid == i.Pid && base == command.TakesLines { // it may have executed another program since its start
			front = base
		}
		return front, f.NoEcho
	case f.Pid == i.Pid:
		return base, f.NoEcho
	}
	return command.TakesUnknown, f.NoEcho
}

// earlier matches text that shells replace by earlier lines.
var earlier = lazyregexp.New(`(?m)^\s*\^|(?:^|[^$\\])![^\s=("'|&;]`)

var quoted = lazyregexp.New(`'[^']*'`)

// unseen returns why text may not be typed at a shell's prompt, because a part of it
// changes the line other than by adding to it; "" if it may.
func unseen(text string) string {
	if !utf8.ValidString(text) {
		return "only UTF-8 text may be typed at a shell's prompt"
	}
	for _, r := range text {
		if unicode.IsControl(r) && !strings.ContainsRune("\r\n\x03\x04\x0c\x1a", r) {
			return "at a shell's prompt, control characters and escape sequences are refused, except Enter, Ctrl-C, Ctrl-D, Ctrl-L and Ctrl-Z: type the whole line as text"
		}
	}
	if earlier().MatchString(quoted().ReplaceAllString(text, "''")) {
		return "at a shell's prompt, ! and ^ for earlier lines are refused: type the whole line"
	}
	return ""
}

// edited returns the line after the keys that a terminal handles itself: backspace, ^W
// and ^U.
func edited(line string) string {
	var out []rune
	for _, r := range line {
		switch r {
		case 8, 127:
			out = out[:max(0, len(out)-1)]
		case 21:
			out = out[:0]
		case 23:
			s := strings.TrimRight(string(out), " ")
			out = []rune(s[:strings.LastIndex(s, " ")+1])
		default:
			out = append(out, r)
		}
	}
	return string(out)
}
