package shellint

import "unicode/utf8"

// maxTyped is the longest line in bytes that is taken from the input.
const maxTyped = 4096

// typed follows the bytes written to the terminal, to know the line of a command if its shell does not report it. An unknown line is better
// than a wrong one: only text without any control, from an idle prompt up to one Enter, counts.
type typed struct {
	atPrompt bool // between prompt end and C
	done     bool // Enter or Ctrl-C was sent at this prompt
	bad      bool // something at this prompt was not plain text
	text     []byte

	// ahead is the number of later lines that may hold bytes written while no prompt was waiting for them.
	ahead   int
	partial bool // the last of these has no end yet
}

func (t *typed) write(p []byte) {
	for _, c := range p {
		switch {
		case !t.atPrompt || t.done:
			t.writeAhead(c)
		case c == '\r' || c == '\n':
			t.done = true
		case c == 3: // Ctrl-C starts the line anew
			t.done, t.bad = true, true
		case c < 0x20 || c == del || len(t.text) == maxTyped:
			t.bad = true
		case !t.bad:
			t.text = append(t.text, c)
		}
	}
}

func (t *typed) writeAhead(c byte) {
	end := c == '\r' || c == '\n'
	if !t.partial {
		t.ahead++
	}
	t.partial = !end
}

// prompt records that a prompt is being written. A redrawn prompt does not end the line being edited.
func (t *typed) prompt() {
	if !t.atPrompt || t.done {
		t.reset()
	}
}

// ready records that the prompt is complete and the shell reads a line.
func (t *typed) ready() { t.atPrompt = true }

// take returns the line that the shell runs now, if it is certain.
func (t *typed) take() (string, bool) {
	ok := t.atPrompt && t.done && !t.bad && t.ahead == 0 && len(t.text) > 0 && utf8.Valid(t.text)
	line := ""
	if ok {
		line = string(t.text)
	}
	if t.ahead > 0 {
		t.ahead--
		t.partial = t.partial && t.ahead > 0
	}
	t.reset()
	return line, ok
}

func (t *typed) reset() {
	clear(t.text)
	*t = typed{text: t.text[:0], ahead: t.ahead, partial: t.partial}
}

// restart forgets everything.
func (t *typed) restart() {
	t.ahead, t.partial = 0, false
	t.reset()
}
