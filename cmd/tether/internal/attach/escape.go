package attach

// escapes detects the keys for tether itself: at the start of a line, ~. detaches, ~? shows help and ~~ types one ~. Everything else
// passes; a ~ at the start of a line is held back until the next key. It is a pure state machine: pieces of any size give the same result.
type escapes struct {
	state escapeState
}

type escapeState uint8

const (
	atLineStart escapeState = iota // nothing was typed yet, or Enter was the last
	afterTilde                     // a ~ at the start of a line is held back
	inLine
)

// escapeAction is the action that the person requested.
type escapeAction uint8

const (
	escapeNone escapeAction = iota
	escapeDetach
	escapeHelp
)

const escapeHelpText = "at the start of a line:\r\n  ~.  detach, the terminal keeps running\r\n  ~~  type one ~\r\n  ~?  show this help\r\n"

// feed appends the typed bytes for the terminal to dst. With escapeDetach or escapeHelp, rest is the part of typed that was not processed.
func (e *escapes) feed(dst, typed []byte) (send []byte, action escapeAction, rest []byte) {
	for i, c := range typed {
		if e.state == afterTilde {
			e.state = inLine
			switch c {
			case '.':
				return dst, escapeDetach, typed[i+1:]
			case '?':
				e.state = atLineStart
				return dst, escapeHelp, typed[i+1:]
			case '~':
				dst = append(dst, '~')
				continue
			}
			dst = append(dst, '~')
		}
		switch {
		case c == '\r' || c == '\n':
			e.state = atLineStart
		case c == '~' && e.state == atLineStart:
			e.state = afterTilde
			continue
		default:
			e.state = inLine
		}
		dst = append(dst, c)
	}
	return dst, escapeNone, nil
}
