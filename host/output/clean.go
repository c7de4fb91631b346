package output

import (
	"strconv"

	"tether/internal/jsonspan"
)

// Clean checks a client's JSON string. It is decoded and encoded again only if it
// contains half characters or bytes that are not UTF-8.
func Clean(quoted []byte) (Text, error) {
	found, err := jsonspan.CheckString(quoted)
	if err != nil || found.UTF8 && joinable(quoted[1:len(quoted)-1]) {
		return Text{Quoted: quoted, found: found}, err
	}
	text, err := jsonspan.AppendUnquote(nil, quoted)
	if err != nil {
		return Text{}, err
	}
	t := requote(text)
	t.found.OSC = found.OSC
	return t, nil
}

// requote is text that was decoded.
func requote(text []byte) Text {
	return Text{Quoted: jsonspan.AppendQuote(nil, text), found: jsonspan.Check{Size: len(text), UTF8: true}}
}

// skip cuts n bytes, or a few more up to the next character, from the front. It returns
// false if that is all.
func (t *Text) skip(n int64) bool {
	switch {
	case n >= int64(t.Size()):
		return false
	case n <= 0:
		return true
	}
	at, size := jsonspan.Skip(t.Quoted[1:len(t.Quoted)-1], int(n))
	t.Quoted = append([]byte{'"'}, t.Quoted[1+at:]...)
	t.found = jsonspan.Check{Size: t.Size() - size, UTF8: true, OSC: t.found.OSC}
	return true
}

// joinable reports whether escaped text may be joined with other text without a change of
// meaning. Text that begins or ends with half of a surrogate pair may not: joined with
// the other half it would decode to one character instead of two U+FFFD.
func joinable(esc []byte) bool {
	if len(esc) >= 6 && esc[0] == '\\' && esc[1] == 'u' && hex4(esc[2:6])>>10 == 0xDC00>>10 {
		return false
	}
	end := esc[max(0, len(esc)-6):]
	// The backslash may itself be escaped. Then this is a false alarm, which costs one
	// decoding.
	return len(end) < 6 || end[0] != '\\' || end[1] != 'u' || hex4(end[2:6])>>10 != 0xD800>>10
}

// hex4 reads four hexadecimal digits, which have been validated.
func hex4(b []byte) uint64 {
	v, _ := strconv.ParseUint(string(b), 16, 32)
	return v
}
