// Package asciicast writes and reads recordings of terminals in the format of asciinema,
// versions 2 and 3: a header, then the events, each a line of JSON. See
// https://docs.asciinema.org/manual/asciicast/v3/.
//
//	w, err := asciicast.NewWriter(f, asciicast.Header{Version: 3, Cols: 80, Rows: 24})
//	err = w.Write(asciicast.Event{At: time.Second, Kind: asciicast.Output, Data: "hello"})
package asciicast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Header describes a whole recording.
type Header struct {
	Version    int // 2 or 3
	Cols, Rows int
	Started    time.Time // written in whole seconds; zero if not known
	Title      string
	Term       string // the value of TERM
}

// Kind is the kind of an event.
type Kind string

// The kinds that this program writes. Reader also returns other kinds, such as input and
// markers; callers may skip them.
const (
	Output Kind = "o" // Data was printed
	Resize Kind = "r" // Data is "80x24"
	Exit   Kind = "x" // Data is the exit status; version 3 only
)

// Event is one event of a recording.
type Event struct {
	At   time.Duration // since the beginning of the recording, in whole microseconds
	Kind Kind
	Data string
}

// Writer writes a recording. It is for one goroutine.
type Writer struct {
	out     io.Writer
	version int
	last    time.Duration // time of the last event
}

// header2 and header3 are the headers of versions 2 and 3 in the file.
type header2 struct {
	Version   int               `json:"version"`
	Width     int               `json:"width"`
	Height    int               `json:"height"`
	Timestamp int64             `json:"timestamp,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
}

type header3 struct {
	Version   int    `json:"version"`
	Term      term3  `json:"term"`
	Timestamp int64  `json:"timestamp,omitempty"`
	Title     string `json:"title,omitempty"`
}

type term3 struct {
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
	Type string `json:"type,omitempty"`
}

// NewWriter writes the header to out. It fails if the version is neither 2 nor 3, or out
// fails.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	var stamp int64
	if !h.Started.IsZero() {
		stamp = h.Started.Unix()
	}
	var line any
	switch h.Version {
	case 2:
		first := header2{Version: 2, Width: h.Cols, Height: h.Rows, Timestamp: stamp, Title: h.Title}
		if h.Term != "" {
			first.Env = map[string]string{"TERM": h.Term}
		}
		line = first
	case 3:
		line = header3{Version: 3, Term: term3{h.Cols, h.Rows, h.Term}, Timestamp: stamp, Title: h.Title}
	default:
		return nil, fmt.Errorf("version %d of asciicast cannot be written; versions are 2 and 3", h.Version)
	}
	return &Writer{out: out, version: h.Version}, writeLine(out, line)
}

// Write writes one event. If e.At is before the last event, the event gets the time of
// the last one. Version 2 has no Exit events, so Write drops them.
func (w *Writer) Write(e Event) error {
	if w.version == 2 && e.Kind == Exit {
		return nil
	}
	at := max(e.At, w.last).Round(time.Microsecond)
	shown := at
	if w.version == 3 {
		shown = at - w.last
	}
	w.last = at
	return writeLine(w.out, []any{json.Number(strconv.FormatFloat(shown.Seconds(), 'f', 6, 64)), e.Kind, e.Data})
}

func writeLine(out io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends the line
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(b.Bytes())
	return err
}

// Reader reads a recording. It is for one goroutine.
type Reader struct {
	Header Header

	lines *bufio.Scanner
	n     int           // lines so far
	last  time.Duration // time of the last event
}

// maxLine bounds a line, in bytes.
const maxLine = 4 << 20

// maxLength bounds the length of a recording.
const maxLength = 1000 * time.Hour

// maxSide bounds the columns and the rows of a terminal.
const maxSide = 10000

// NewReader reads the header. It fails if that is invalid, of another version or missing.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{lines: bufio.NewScanner(in)}
	r.lines.Buffer(nil, maxLine)
	line, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	}
	if err != nil {
		return nil, err
	}
	var h struct {
		header2
		Term json.RawMessage `json:"term"`
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, errors.New("line 1 is not the header of an asciicast recording")
	}
	r.Header = Header{Version: h.Version, Cols: h.Width, Rows: h.Height, Title: h.Title, Term: h.Env["TERM"]}
	if h.Timestamp > 0 {
		r.Header.Started = time.Unix(h.Timestamp, 0).UTC()
	}
	switch h.Version {
	case 2:
	case 3:
		var t term3
		if err := json.Unmarshal(h.Term, &t); err != nil {
			return nil, errors.New("line 1: term is missing")
		}
		r.Header.Cols, r.Header.Rows, r.Header.Term = t.Cols, t.Rows, t.Type
	default:
		return nil, fmt.Errorf("the recording has version %d of asciicast; only versions 2 and 3 can be read", h.Version)
	}
	if min(r.Header.Cols, r.Header.Rows) < 1 || max(r.Header.Cols, r.Header.Rows) > maxSide {
		return nil, fmt.Errorf("line 1: the size %dx%d is out of range: 1 to %d columns and rows", r.Header.Cols, r.Header.Rows, maxSide)
	}
	return r, nil
}

// next returns the next line that is neither empty nor a comment.
func (r *Reader) next() ([]byte, error) {
	for r.lines.Scan() {
		r.n++
		if line := bytes.TrimSpace(r.lines.Bytes()); len(line) > 0 && line[0] != '#' {
			return line, nil
		}
	}
	if err := r.lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", r.n+1, err)
	}
	return nil, io.EOF
}

// Next returns the next event, or io.EOF at the end. If the time of an event is before
// the last event, it gets the time of the last one.
func (r *Reader) Next() (Event, error) {
	line, err := r.next()
	if err != nil {
		return Event{}, err
	}
	var seconds float64
	var e Event
	if err := json.Unmarshal(line, &[]any{&seconds, &e.Kind, &e.Data}); err != nil {
		return Event{}, fmt.Errorf("line %d is not an event", r.n)
	}
	if math.IsNaN(seconds) || seconds < 0 || seconds > maxLength.Seconds() {
		return Event{}, fmt.Errorf("line %d: the time %g s is out of range: 0 to %v", r.n, seconds, maxLength)
	}
	e.At = time.Duration(math.Round(seconds*1e6)) * time.Microsecond
	if r.Header.Version == 3 {
		e.At += r.last
	}
	e.At = max(e.At, r.last)
	if e.At > maxLength {
		return Event{}, fmt.Errorf("line %d: the recording is longer than %v", r.n, maxLength)
	}
	r.last = e.At
	return e, nil
}
