package shellint

import "unicode/utf8"

// maxTyped bounds a line taken from the input, in bytes.
const maxTyped = 4096

// typed derives a command's line from the bytes written to the terminal, for shells that
// do not report lines. An unknown line is better than a wrong one: only text without any
// control counts, typed at an idle prompt and ended by one Enter.
type typed struct {
	atPrompt bool // the prompt is complete and no C has come
	done     bool // Enter or Ctrl-C was sent at this prompt
	bad      bool // something at this prompt was not plain text
	text     []byte

	// ahead is the number of later lines that may contain bytes written while no prompt
	// was waiting.
	ahead   int
	partial bool // the last of these lines is not ended yet
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

// prompt records that a prompt is being written. A redrawn prompt does not end the line
// being edited.
func (t *typed) prompt() {
	if !t.atPrompt || t.done {
		t.reset()
	}
}

// ready records that the prompt is complete and the shell reads a line.
func (t *typed) ready() { t.atPrompt = true }

// take returns the line that the shell runs now. It returns false if the line is not
// certain.
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
