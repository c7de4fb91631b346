package jsonspan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// Errors of CheckText.
var (
	ErrNotUTF8   = errors.New("it is not UTF-8")
	ErrSurrogate = errors.New(`it has half of a surrogate pair (\ud800 to \udfff), which stands for no character`)
)

// CheckText returns an error if JSON has text that decoders would replace: bytes that are
// not UTF-8, or an escaped half of a surrogate pair. It does not check that data is JSON.
func CheckText(data []byte) error {
	if !utf8.Valid(data) {
		return ErrNotUTF8
	}
	for i := 0; i < len(data); i++ {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 {
			return nil
		}
		i += next
		switch unit := hex4(data[i:]); {
		case unit < 0: // another escape
			i++
		case unit < 0xd800 || unit > 0xdfff:
			i += 5
		case unit < 0xdc00 && hex4(data[i+6:])&^0x3ff == 0xdc00:
			i += 11
		default:
			return ErrSurrogate
		}
	}
	return nil
}

// Unmarshal is json.Unmarshal for JSON from outside: text that package json would replace
// is an error, that of CheckText.
func Unmarshal(data []byte, into any) error {
	if err := CheckText(data); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Decode is Unmarshal for all that r has. The caller bounds it.
func Decode(r io.Reader, into any) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return Unmarshal(data, into)
}
