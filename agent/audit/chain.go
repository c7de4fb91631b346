package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Head is the end of a chain.
type Head struct {
	N    int64  `json:"n"`    // number of the last line; 0 if there is none
	Hash string `json:"hash"` // of the last line, in hex
}

// origin is the hash before line 1.
var origin = strings.Repeat("0", 2*sha256.Size)

// start is the head of an empty log.
var start = Head{Hash: origin}

// maxRecord bounds a line, in bytes. The writer's contents are bounded too.
const maxRecord = 256 << 10

// Record is one line of a log.
type Record struct {
	N      int64
	Prev   string // hash of the previous line
	Hash   string
	Fields json.RawMessage // the whole line, a JSON object
}

// seal returns a JSON object as the line that follows head, with a newline at its end,
// and the new head.
func seal(head Head, object []byte) ([]byte, Head, error) {
	inner := bytes.TrimSpace(object)
	if len(inner) < 2 || inner[0] != '{' || inner[len(inner)-1] != '}' || bytes.ContainsAny(inner, "\n\r") {
		return nil, head, fmt.Errorf("not a JSON object on one line: %.40q", object)
	}
	inner = inner[1 : len(inner)-1]
	next := Head{N: head.N + 1}
	var line bytes.Buffer
	fmt.Fprintf(&line, `{"n":%d,`, next.N)
	if len(inner) > 0 {
		line.Write(inner)
		line.WriteByte(',')
	}
	fmt.Fprintf(&line, `"prev":"%s"`, head.Hash)
	sum := sha256.Sum256(line.Bytes())
	next.Hash = hex.EncodeToString(sum[:])
	fmt.Fprintf(&line, `,"hash":"%s"}`+"\n", next.Hash)
	if line.Len() > maxRecord {
		return nil, head, fmt.Errorf("a record of %d bytes, at most %d are allowed", line.Len(), maxRecord)
	}
	return line.Bytes(), next, nil
}

var errForm = errors.New("not an audit record")

// Parse reads one line, without or with its newline. It fails if the line is not one that
// seal makes, byte for byte.
func Parse(line []byte) (Record, error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	tail := len(`,"hash":"`) + 2*sha256.Size + len(`"}`)
	before := len(line) - tail
	if before < 0 || len(line) >= maxRecord || !json.Valid(line) {
		return Record{}, errForm
	}
	sum := sha256.Sum256(line[:before])
	r := Record{Hash: hex.EncodeToString(sum[:]), Fields: line}
	if want := `,"hash":"` + r.Hash + `"}`; string(line[before:]) != want {
		if bytes.HasPrefix(line[before:], []byte(`,"hash":"`)) {
			return Record{}, errors.New("the hash does not match: the record was changed")
		}
		return Record{}, errForm
	}
	var ok bool
	if r.N, ok = numberOf(line); !ok {
		return Record{}, errForm
	}
	if r.Prev, ok = prevOf(line[:before]); !ok {
		return Record{}, errForm
	}
	return r, nil
}

// numberOf reads {"n":N, at the beginning.
func numberOf(line []byte) (int64, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"n":`))
	digits, _, comma := bytes.Cut(rest, []byte(","))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	return n, ok && comma && err == nil && n > 0 && strconv.FormatInt(n, 10) == string(digits)
}

// prevOf reads "prev":"HASH" at the end.
func prevOf(text []byte) (string, bool) {
	const key = `"prev":"`
	at := len(text) - len(key) - 2*sha256.Size - 1
	if at < 0 || !bytes.HasPrefix(text[at:], []byte(key)) || text[len(text)-1] != '"' {
		return "", false
	}
	hash := string(text[at+len(key) : len(text)-1])
	return hash, strings.Trim(hash, "0123456789abcdef") == ""
}

// follows returns why r cannot be the line after head, or nil.
func (r Record) follows(head Head) error {
	switch {
	case r.N > head.N+1:
		return fmt.Errorf("records %d to %d are missing before this one", head.N+1, r.N-1)
	case r.N <= head.N:
		return fmt.Errorf("record %d follows record %d: records were reordered or repeated", r.N, head.N)
	case r.Prev != head.Hash:
		return fmt.Errorf("record %d is not the one that this one was written after", head.N)
	}
	return nil
}
