package redact

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// early judges a string by the part that has arrived, if that is enough.
func (s *sanitizer) early() {
	verdict := unknown
	switch {
	case s.wait:
	case s.kind == ']':
		verdict = s.earlyOSC()
	case s.kind == 'P':
		verdict = deviceString(s.held)
	case s.kind == '_':
		verdict = s.earlyKitty()
	default:
		verdict = refused
	}
	if verdict == unknown && len(s.held) >= maxString {
		verdict = refused
	}
	end := s.payload + int64(len(s.held))
	switch verdict {
	case refused:
		if len(s.held) >= 2 { // otherwise there is no room yet for the replacement
			s.blank(end)
		}
	case picture:
		s.state = image
		if s.images == 0 {
			s.blank(end)
		}
	}
}

// verdict is the decision on a string.
type verdict uint8

const (
	unknown verdict = iota // its end decides
	refused
	picture
)

// deviceString judges a DCS: only sixel images pass.
func deviceString(p []byte) verdict {
	for i, c := range p {
		switch {
		case c >= '0' && c <= ';':
		case c == 'q' && i < maxControl:
			return picture
		default:
			return refused
		}
	}
	return unknown
}

// earlyOSC judges an OSC by its number, and images by their description.
func (s *sanitizer) earlyOSC() verdict {
	number, rest, ok := bytes.Cut(s.held, []byte{';'})
	switch {
	case !ok && len(number) > 4:
		return refused
	case !ok:
		return unknown
	}
	if _, known := oscs[string(number)]; !known && string(number) != "1337" {
		return refused
	}
	if string(number) != "1337" {
		s.wait = true
		return unknown
	}
	name, value, ok := bytes.Cut(rest, []byte{'='})
	if !ok {
		return unknown
	}
	switch string(name) {
	case "File", "MultipartFile":
		args, _, complete := bytes.Cut(value, []byte{':'})
		if !complete && (string(name) == "File" || len(args) < maxControl) {
			if len(args) >= maxControl {
				return refused
			}
			return unknown
		}
		if inline(args) && string(name) == "File" {
			return picture
		}
		return refused
	case "FilePart":
		if s.chunks {
			return picture
		}
		return refused
	}
	return unknown
}

// inline reports whether iTerm2 would show an image; otherwise it would save it as a
// file.
func inline(args []byte) bool {
	for arg := range bytes.SplitSeq(args, []byte{';'}) {
		if string(arg) == "inline=1" {
			return true
		}
	}
	return false
}

// earlyKitty judges kitty's graphics once their description is complete.
func (s *sanitizer) earlyKitty() verdict {
	if s.held[0] != 'G' {
		return refused
	}
	keys, _, ok := bytes.Cut(s.held[1:], []byte{';'})
	if !ok {
		if len(keys) > maxControl {
			return refused
		}
		return unknown
	}
	return s.kitty(keys)
}

// kitty lets only sequences pass that no terminal answers: one with q=2, one that names
// no image, or a later part of such a sequence.
func (s *sanitizer) kitty(keys []byte) verdict {
	action, quiet, named, more, other := "t", false, false, false, false
	for pair := range bytes.SplitSeq(keys, []byte{','}) {
		name, value, _ := bytes.Cut(pair, []byte{'='})
		switch string(name) {
		case "a":
			action, other = string(value), true
		case "q":
			quiet = string(value) == "2"
		case "i", "I":
			named = true
		case "m":
			more = string(value) == "1"
		case "t": // not "d": a file or shared memory of the observer's machine
			if string(value) != "d" {
				return refused
			}
			other = true
		default:
			other = true
		}
	}
	if s.chunks && !other && !named {
		s.chunks = more
		return picture
	}
	s.chunks = false
	if action == "q" || named && !quiet {
		return refused
	}
	s.chunks = more
	return picture
}

// allowed judges a string at its end.
func (s *sanitizer) allowed() bool {
	switch s.kind {
	case ']':
		number, rest, more := bytes.Cut(s.held, []byte{';'})
		if string(number) == "1337" {
			return s.iterm(rest)
		}
		judge, ok := oscs[string(number)]
		return ok && (more || judge == nil) && plain(rest) && (judge == nil || judge(s.opts, string(rest))) && s.afford(string(number), rest)
	case '_':
		return len(s.held) > 0 && s.held[0] == 'G' && plain(s.held) && s.kitty(s.held[1:]) == picture
	}
	return false
}

// afford reports whether the allowance for a limited OSC is not used up, and takes one
// from it.
func (s *sanitizer) afford(number string, p []byte) bool {
	switch {
	case number == "0" || number == "1" || number == "2":
		return spend(&s.titles)
	case notifies(number, p):
		return spend(&s.notices)
	}
	return true
}

// spend takes one from an allowance, if any is left.
func spend(left *int) bool {
	if *left == 0 {
		return false
	}
	*left--
	return true
}

// notifies reports whether an OSC pops up a notification.
func notifies(number string, p []byte) bool {
	if number != "9" {
		return number == "777"
	}
	first, _, _ := bytes.Cut(p, []byte{';'})
	_, err := strconv.Atoi(string(first))
	return err != nil // with a number it is progress or a report
}

// plain reports whether text has no control characters.
func plain(text []byte) bool {
	for _, c := range text {
		if c < 0x20 || c == del {
			return false
		}
	}
	return true
}

// iterm judges those of iTerm2's sequences that are decided at their end.
func (s *sanitizer) iterm(p []byte) bool {
	if !plain(p) {
		return false
	}
	name, value, _ := bytes.Cut(p, []byte{'='})
	s.chunks = string(name) == "MultipartFile" && inline(value) && s.images > 0
	if string(name) == "MultipartFile" {
		return s.chunks
	}
	return string(name) == "FileEnd"
}

// Bounds of the contents of short strings, in bytes.
const (
	maxTitle  = 512
	maxNotice = 256
	maxURI    = 2083 // as VTE and iTerm2 have it
)

// oscs are the OSCs that may pass, by number. One passes if its function returns true, or
// is nil. Any other OSC is blanked.
var oscs = map[string]func(*Options, string) bool{
	"0": title, "1": title, "2": title,
	"4": colour, "5": colour, "10": colour, "11": colour, "12": colour, "13": colour, "14": colour, "15": colour, "16": colour,
	"17": colour, "18": colour, "19": colour,
	"104": nil, "105": nil, "110": nil, "111": nil, "112": nil, "113": nil, "114": nil, "115": nil, "116": nil, "117": nil, "118": nil, "119": nil,
	"7":   func(_ *Options, p string) bool { return len(p) <= maxURI },
	"8":   link,
	"9":   notice,
	"52":  clipboard,
	"777": func(_ *Options, p string) bool { return strings.HasPrefix(p, "notify;") && legible(p, maxNotice) },
}

func title(_ *Options, p string) bool { return legible(p, maxTitle) }

// legible reports whether text has at most most bytes, is UTF-8 and has no hidden
// character.
func legible(p string, most int) bool {
	return len(p) <= most && utf8.ValidString(p) && !strings.ContainsFunc(p, hidden)
}

// colour allows setting colours, not asking for them.
func colour(_ *Options, p string) bool {
	for field := range strings.SplitSeq(p, ";") {
		if strings.TrimSpace(field) == "?" {
			return false
		}
	}
	return true
}

// link allows links that a browser or a mail program opens, and links to files if
// Options.FileLinks says so.
func link(o *Options, p string) bool {
	params, uri, ok := strings.Cut(p, ";")
	if !ok || len(params) > maxControl || len(uri) > maxURI {
		return false
	}
	if uri == "" {
		return true
	}
	if strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || hidden(r) }) {
		return false
	}
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	case "file":
		return o.FileLinks
	}
	return false
}

// notice passes short notifications and progress, and ConEmu's reports, but not ConEmu's
// commands.
func notice(_ *Options, p string) bool {
	number, _, _ := strings.Cut(p, ";")
	if _, err := strconv.Atoi(number); err == nil {
		return number == "4" || number == "9" || number == "12"
	}
	return legible(p, maxNotice)
}

// clipboard allows setting the clipboard if Options.Clipboard says so, and never asking
// for it.
func clipboard(o *Options, p string) bool {
	_, data, ok := strings.Cut(p, ";")
	return ok && o.Clipboard && !strings.Contains(data, "?")
}
