package termprofile

import (
	"bytes"
	"regexp"
	"strings"

	"tether/internal/progentry"
)

// isEmpty reports whether a text has nothing in it.
func isEmpty(text []byte) bool { return progentry.Empty(text) }

// entry is an edit of a JSON or TOML file.
type entry struct {
	format progentry.Format
	name   string
	starts progentry.Entry
}

func (e entry) add(text []byte) ([]byte, error) { return e.format.Add(text, e.name, e.starts) }

func (e entry) remove(text []byte) ([]byte, error) {
	return e.format.Remove(text, e.name, e.starts.Command, e.starts.Args[0])
}

// member is the value of a member of a JSON file.
type member struct{ name, value string }

func (m member) add(text []byte) ([]byte, error) { return progentry.SetMember(text, m.name, m.value) }

func (m member) remove(text []byte) ([]byte, error) {
	return progentry.RemoveMember(text, m.name, m.value)
}

// whole is a file of tether's own. If mark is not empty, the file may be the person's,
// and is tether's only if it has the mark.
type whole struct{ text, mark string }

func (w whole) add(text []byte) ([]byte, error) {
	if w.mark != "" && len(text) > 0 && !bytes.Contains(text, []byte(w.mark)) {
		return nil, errTaken
	}
	return []byte(w.text), nil
}

func (w whole) remove(text []byte) ([]byte, error) {
	if w.mark != "" && !bytes.Contains(text, []byte(w.mark)) {
		return text, nil
	}
	return nil, nil
}

// block is lines at the end of a file, behind a comment by which they are found again.
type block struct {
	comment string // what begins a comment
	lines   []string
	// taken, if not nil, finds a setting of the person's beside which the lines would not
	// count.
	taken *regexp.Regexp
}

// mark is in the first line of a block, end in its last.
const (
	mark = "tether: new shells are tether terminals (tether setup terminal --undo)"
	end  = "tether: end"
)

func (b block) add(text []byte) ([]byte, error) {
	rest, _ := b.remove(text) // it never fails
	if b.taken != nil && b.taken.Match(rest) {
		return nil, errTaken
	}
	newline := "\n"
	if bytes.Contains(rest, []byte("\r\n")) {
		newline = "\r\n"
	}
	out, last := bytes.Clone(rest), newline
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out, last = append(out, newline...), "" // by which remove knows
	}
	for _, line := range append([]string{b.comment + " " + mark}, b.lines...) {
		out = append(out, line+newline...)
	}
	return append(out, b.comment+" "+end+last...), nil
}

func (b block) remove(text []byte) ([]byte, error) {
	var out, newline []byte
	inside := false
	for line := range bytes.Lines(text) {
		switch trimmed := strings.TrimSpace(string(line)); {
		case trimmed == b.comment+" "+mark:
			inside, newline = true, line[len(bytes.TrimRight(line, "\r\n")):]
		case inside && trimmed == b.comment+" "+end:
			inside = false
			if !bytes.HasSuffix(line, []byte("\n")) {
				out = bytes.TrimSuffix(out, newline)
			}
		case !inside:
			out = append(out, line...)
		}
	}
	if inside { // its last line is not there any more: what is whose is not known
		return text, nil
	}
	return out, nil
}
