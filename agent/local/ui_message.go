package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/jsonspan"
	"tether/vocab"
)

// The messages of the WebSocket /pty. Existing user interfaces know the fields type, id,
// data, history, exitCode, error, cols and rows; all other fields and types are additions
// that they may ignore.
const (
	ptyAttach = "pty:attach" // client: asks for the terminal's output
	ptyDetach = "pty:detach" // client: ends that
	ptyInput  = "pty:input"  // client: Data was typed
	ptyResize = "pty:resize" // client: Cols, Rows
	ptyAck    = "pty:ack"    // client: the output before End has been shown
	ptyPing   = "ping"       // client

	ptyAttached = "pty:attached" // server: History replaces all earlier output: bytes that draw a screen, then text
	ptyOutput   = "pty:output"   // server: Data is new output
	ptyResized  = "pty:resized"  // server: Cols, Rows
	ptyExit     = "pty:exit"     // server: ExitCode; the last message of a terminal
	ptyError    = "pty:error"    // server: Error says why a request failed
	ptyPong     = "pong"         // server: all requests that were sent before the ping have been carried out
	ptyTerminal = "terminal"     // server: a terminalEvent
)

// sessionNotFound is the error text by which existing clients recognise an unknown id.
const sessionNotFound = "Session not found"

// maxID bounds the ids in requests, in bytes. Ids of terminals have 12.
const maxID = 64

// request is a client's message. parse has checked that its type is known and that the
// fields of that type are present and in range.
type request struct {
	Type string  `json:"type"`
	ID   string  `json:"id"`
	Data *string `json:"data"`
	Cols *uint16 `json:"cols"`
	Rows *uint16 `json:"rows"`
	// Since, in pty:attach, is the offset up to which the client has the output. Absent
	// means that it has none.
	Since *int64 `json:"since"`
	// Ack, in pty:attach, announces that the client will send pty:ack.
	Ack bool  `json:"ack"`
	End int64 `json:"end"`
}

// needs maps each type to a check of its fields. The check returns a description of the
// fault, "" if there is none.
var needs = map[string]func(*request) string{
	ptyAttach: func(r *request) string {
		if r.Since != nil && *r.Since < 0 {
			return "since must not be negative"
		}
		return ""
	},
	ptyDetach: func(*request) string { return "" },
	ptyInput: func(r *request) string {
		if r.Data == nil {
			return "data is missing"
		}
		return ""
	},
	ptyResize: func(r *request) string {
		if r.Cols == nil || r.Rows == nil {
			return "cols and rows are both needed"
		}
		return ""
	},
	ptyAck: func(r *request) string {
		if r.End < 0 {
			return "end must not be negative"
		}
		return ""
	},
	ptyPing: func(*request) string { return "" },
}

var errOtherField = errors.New("a field besides type, id and data")

// decodeText decodes a message that has only the fields type, id and data. It gives the
// same result as encoding/json, which takes 10 µs longer for a key after a pause. ok is
// false for all other messages, including faulty ones.
func decodeText(data []byte) (r request, ok bool) {
	var text string
	err := jsonspan.Object(data, func(key, value []byte) error {
		var to *string
		switch string(key) {
		case "type":
			to = &r.Type
		case "id":
			to = &r.ID
		case "data":
			to, r.Data = &text, &text
		default:
			return errOtherField
		}
		p, err := jsonspan.AppendUnquote(nil, value)
		*to = string(p)
		return err
	})
	return r, err == nil
}

// parse parses and checks a message. If it returns an error, the request has only the
// message's id for the answer, or "" if the message had no usable id.
func parse(data []byte) (request, error) {
	if err := jsonspan.CheckText(data); err != nil {
		return request{}, localapi.BadRequest("message: %v", err)
	}
	r, decoded := decodeText(data)
	if !decoded {
		r = request{}
		if err := json.Unmarshal(data, &r); err != nil {
			return request{ID: answerable(r.ID)}, localapi.BadRequest("message: %s", localapi.JSONProblem(err, &r))
		}
	}
	check, ok := needs[r.Type]
	problem := ""
	switch {
	case r.Type == "":
		problem = "message without a type"
	case !ok:
		problem = fmt.Sprintf("type %.40q is not known", r.Type)
	case r.Type == ptyPing:
	case r.ID == "":
		problem = r.Type + ": id is missing"
	case len(r.ID) > maxID:
		problem = fmt.Sprintf("%s: an id has at most %d bytes", r.Type, maxID)
	default:
		if problem = check(&r); problem != "" {
			problem = r.Type + ": " + problem
		}
	}
	if problem != "" {
		return request{ID: answerable(r.ID)}, localapi.BadRequest("%s", problem)
	}
	return r, nil
}

// answerable returns id, or "" if it is too long to be sent back.
func answerable(id string) string {
	if len(id) > maxID {
		return ""
	}
	return id
}

// piece is the part [Off, Off+len(Data)) of a terminal's text.
type piece struct {
	Data []byte // valid UTF-8
	Off  int64
}

func (p piece) end() int64 { return p.Off + int64(len(p.Data)) }

// attached is the content of a pty:attached message.
type attached struct {
	id        string
	history   piece
	size      term.Size
	sizes     []sizeAt // sizes that the terminal had in the history, the first at its beginning; nil if all equal size
	screen    []byte   // valid UTF-8 that draws the screen before the history on a fresh terminal of the first size; sent in front of the history
	unknown   bool     // a part of screen is not known
	truncated bool     // there was earlier output that the client did not get
	lost      int64    // bytes between the last output that the client was sent and the history
}

// The following encoders append one message each to dst. They are written by hand for
// speed, since a flood of output is a flood of messages.

func appendAttached(dst []byte, a attached) []byte {
	dst = appendHead(dst, ptyAttached, a.id)
	if len(a.screen)+len(a.history.Data) > 0 {
		dst = append(dst, `,"history":`...)
		dst = jsonspan.AppendQuote(dst, slices.Concat(a.screen, a.history.Data))
	}
	if len(a.screen) > 0 {
		dst = appendInt(dst, "screenBytes", int64(len(a.screen)))
	}
	if a.unknown {
		dst = append(dst, `,"screenTruncated":true`...)
	}
	dst = appendRange(dst, a.history)
	dst = appendInt(dst, "cols", int64(a.size.Cols))
	dst = appendInt(dst, "rows", int64(a.size.Rows))
	if a.sizes != nil {
		dst = appendSizes(dst, a.sizes)
	}
	if a.truncated {
		dst = append(dst, `,"truncated":true`...)
	}
	if a.lost > 0 {
		dst = appendInt(dst, "lost", a.lost)
	}
	return append(dst, '}')
}

func appendSizes(dst []byte, sizes []sizeAt) []byte {
	dst = append(dst, `,"sizes":[`...)
	for i, s := range sizes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, "[%d,%d,%d]", s.off, s.size.Cols, s.size.Rows)
	}
	return append(dst, ']')
}

func appendOutput(dst []byte, id string, p piece) []byte {
	dst = appendHead(dst, ptyOutput, id)
	dst = append(dst, `,"data":`...)
	dst = jsonspan.AppendQuote(dst, p.Data)
	return append(appendRange(dst, p), '}')
}

func appendResized(dst []byte, id string, s term.Size) []byte {
	dst = appendHead(dst, ptyResized, id)
	dst = appendInt(dst, "cols", int64(s.Cols))
	return append(appendInt(dst, "rows", int64(s.Rows)), '}')
}

func appendExit(dst []byte, id string, e vocab.Exit) []byte {
	dst = appendHead(dst, ptyExit, id)
	dst = appendInt(dst, "exitCode", int64(e.Code))
	if e.Signal != "" {
		dst = append(dst, `,"signal":`...)
		dst = jsonspan.AppendQuoteString(dst, e.Signal)
	}
	return append(dst, '}')
}

func appendError(dst []byte, id string, e *localapi.Error) []byte {
	text := e.Message
	if e.Code == localapi.CodeNoTerminal {
		text = sessionNotFound
	}
	dst = appendHead(dst, ptyError, id)
	dst = append(dst, `,"error":`...)
	dst = jsonspan.AppendQuoteString(dst, text)
	dst = append(dst, `,"code":`...)
	dst = jsonspan.AppendQuoteString(dst, string(e.Code))
	if e.Hint != "" {
		dst = append(dst, `,"hint":`...)
		dst = jsonspan.AppendQuoteString(dst, e.Hint)
	}
	return append(dst, '}')
}

func appendPong(dst []byte) []byte { return append(dst, `{"type":"`+ptyPong+`"}`...) }

// appendHead begins a message. kind needs no quoting.
func appendHead(dst []byte, kind, id string) []byte {
	dst = append(append(dst, `{"type":"`...), kind...)
	return jsonspan.AppendQuoteString(append(dst, `","id":`...), id)
}

func appendRange(dst []byte, p piece) []byte {
	return appendInt(appendInt(dst, "offset", p.Off), "end", p.end())
}

func appendInt(dst []byte, name string, n int64) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

// newest returns at most the last n bytes of p. They begin at the start of a line if
// there is one, else at the start of a character.
func (p piece) newest(n int) piece {
	if len(p.Data) <= n {
		return p
	}
	cut := len(p.Data) - n
	if next := lineStart(p.Data, cut); next < len(p.Data) {
		cut = next
	}
	for cut < len(p.Data) && !utf8.RuneStart(p.Data[cut]) {
		cut++
	}
	return piece{p.Data[cut:], p.Off + int64(cut)}
}

// lineStart returns the index of the first start of a line in p at or after i, or len(p)
// if there is none.
func lineStart(p []byte, i int) int {
	for ; i < len(p); i++ {
		if i == 0 || p[i-1] == '\n' {
			return i
		}
	}
	return i
}
