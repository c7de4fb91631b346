package command

import "strings"

// openSed reads sed's scripts: the commands e and w, and the flags e and w of s, run
// lines and write files.
func openSed(r *reader, c Command, _ input) bool {
	met, rest := programs()["sed"].split(c.Words[1:])
	p := programs()["sed"]
	d := effect{reader: r, of: c}
	scripts := []Word{}
	inPlace, sandbox := false, false
	for _, m := range met {
		act, known := p.act(m)
		switch {
		case !known:
			d.finding(Option)
		case act == "sed":
			scripts = append(scripts, m.value)
		case act == "inplace":
			inPlace = true
		case act == "sedfile":
			d.found = true
		}
		sandbox = sandbox || m.name == "sandbox"
	}
	if len(scripts) == 0 && !d.found && len(rest) > 0 {
		scripts, rest = rest[:1], rest[1:]
	}
	for _, s := range scripts {
		if !sandbox { // which refuses e and w, but not -i
			r.sedScript(c, s)
		}
	}
	if inPlace {
		for _, w := range rest {
			d.writes(w)
		}
	}
	return false
}

// sedScript finds the commands and files of a sed script.
func (r *reader) sedScript(c Command, script Word) {
	s := sedReader{text: script.Text}
	if !script.Fixed { // variables are text, in most cases; the text around them is read
		s.text = strings.Trim(script.Text, `"`)
	}
	if s.read(); s.runs {
		r.out.findIn(InlineCode, c)
	}
	for _, file := range s.writes {
		r.out.Files = append(r.out.Files, File{Word{file, true}, c, len(r.out.Moves)})
	}
}

// sedReader reads a script. Anything that it does not understand counts as a command that
// runs.
type sedReader struct {
	text   string
	runs   bool
	writes []string
}

func (s *sedReader) read() {
	for s.text != "" && !s.runs {
		s.command()
	}
}

// command reads one command with its addresses.
func (s *sedReader) command() {
	s.text = strings.TrimLeft(s.text, " \t\n;}")
	for s.address() {
		s.text = strings.TrimLeft(s.text, " \t,~+0123456789$")
	}
	s.text = strings.TrimLeft(s.text, " \t!")
	if s.text == "" {
		return
	}
	name := s.text[0]
	s.text = s.text[1:]
	switch name {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F', 'l', 'q', 'Q', 'L':
		s.text = strings.TrimLeft(s.text, " \t0123456789")
	case '#':
		_, s.text, _ = strings.Cut(s.text, "\n")
	case ':', 'b', 't', 'T', 'v':
		if end := strings.IndexAny(s.text, "\n;}"); end >= 0 {
			s.text = s.text[end:]
		} else {
			s.text = ""
		}
	case 'a', 'i', 'c':
		s.appended()
	case 'r', 'R':
		_, s.text, _ = strings.Cut(s.text, "\n")
	case 'w', 'W':
		s.file()
	case 's':
		if s.delimited(2) {
			s.flags()
		}
	case 'y':
		s.delimited(2)
	default: // e, and unknown commands
		s.runs = true
	}
}

// address takes one address away.
func (s *sedReader) address() bool {
	switch {
	case s.text == "":
		return false
	case s.text[0] >= '0' && s.text[0] <= '9' || s.text[0] == '$':
		s.text = strings.TrimLeft(s.text, "0123456789$")
	case s.text[0] == '/':
		s.delimited(1)
		s.text = strings.TrimLeft(s.text, "IM")
	case s.text[0] == '\\':
		s.text = s.text[1:]
		s.delimited(1)
		s.text = strings.TrimLeft(s.text, "IM")
	default:
		return false
	}
	return true
}

// delimited takes away n parts that end with the first character.
func (s *sedReader) delimited(n int) bool {
	if s.text == "" {
		s.runs = true
		return false
	}
	end := s.text[0]
	i := 1
	for ; i < len(s.text) && n > 0; i++ {
		switch {
		case s.text[i] == '\\':
			i++
		case s.text[i] == end:
			n--
		}
	}
	s.text = s.text[min(i, len(s.text)):]
	s.runs = s.runs || n > 0
	return n == 0
}

// flags reads the flags of s.
func (s *sedReader) flags() {
	for s.text != "" {
		switch f := s.text[0]; {
		case strings.IndexByte("gpiIMm0123456789 \t", f) >= 0:
			s.text = s.text[1:]
		case f == 'w':
			s.text = s.text[1:]
			s.file()
			return
		case f == '\n' || f == ';' || f == '}' || f == '#':
			return
		default:
			s.runs = true
			return
		}
	}
}

// file takes the name of a file that is written.
func (s *sedReader) file() {
	name, rest, _ := strings.Cut(s.text, "\n")
	s.text = rest
	if name = strings.TrimSpace(name); name != "/dev/stdout" && name != "/dev/stderr" {
		s.writes = append(s.writes, name)
	}
}

// appended takes the text of a, i or c, which goes on after a backslash.
func (s *sedReader) appended() {
	for {
		line, rest, more := strings.Cut(s.text, "\n")
		s.text = rest
		if !more || !strings.HasSuffix(line, `\`) {
			return
		}
	}
}
