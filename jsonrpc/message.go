package jsonrpc

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"tether/internal/jsonspan"
)

const (
	// maxID is the longest request id that is answered, in bytes. Ids are echoed; nobody
	// needs long ones.
	maxID = 256

	// maxErrorMessage is how much is kept of the text of a received error, in bytes.
	maxErrorMessage = 1 << 10
)

// A message holds the spans of one received JSON-RPC message, nil for members it does not
// have. They alias the message.
type message struct {
	version, id, method, params, result, err []byte
}

// split finds the members of the one object in data; of duplicates the last counts, as
// for encoding/json. It does not look into them, but counts the values in them: more than
// max are an error, unless max is 0.
func split(data []byte, max int) (m message, err error) {
	err = jsonspan.BoundedObject(data, max, func(key, value []byte) error {
		switch string(key) {
		case "jsonrpc":
			m.version = value
		case "id":
			m.id = value
		case "method":
			m.method = value
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.err = value
		}
		return nil
	})
	return m, err
}

// isResponse reports whether m answers a call. A message with a method is a request,
// whatever else it holds.
func (m *message) isResponse() bool {
	return m.method == nil && (m.result != nil || m.err != nil)
}

// checkRequest returns why m is not a valid request or notification, or nil. A missing
// version is tolerated, a wrong one is not.
func (m *message) checkRequest() *Error {
	switch {
	case m.version != nil && string(m.version) != `"2.0"`:
		return Errorf(CodeInvalidRequest, "jsonrpc must be \"2.0\"")
	case m.method == nil:
		return Errorf(CodeInvalidRequest, "method is missing")
	case m.method[0] != '"':
		return Errorf(CodeInvalidRequest, "method must be a string")
	case m.id != nil && !validID(m.id):
		return Errorf(CodeInvalidRequest, "id must be a number or a string of at most %d bytes", maxID)
	case m.params != nil && m.params[0] != '{' && m.params[0] != '[' && !isNull(m.params):
		return Errorf(CodeInvalidParams, "params must be an object or an array")
	}
	return nil
}

// validID reports whether id can be echoed: it must be a number or a string, and valid
// UTF-8, because everything that we send must be. A null id is refused: the reply would
// look like an error without a request.
func validID(id []byte) bool {
	return len(id) <= maxID && utf8.Valid(id) && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9')
}

// replyID returns the id for an error about m. Without method or params, m may be a
// broken response that carries one of our ids: echoing it would answer one of the other
// side's calls.
func (m *message) replyID() []byte {
	if m.id != nil && (m.method != nil || m.params != nil) && validID(m.id) {
		return m.id
	}
	return nil
}

func isNull(value []byte) bool { return string(value) == "null" }

// A response is the outcome of a call.
type response struct {
	result []byte
	err    error
}

var errBadResponse = errors.New("jsonrpc: the other side sent a response without a result or a valid error")

// response copies the response out of m. A null error beside a result counts as no error.
func (m *message) response() response {
	if m.err == nil || isNull(m.err) {
		if m.result == nil {
			return response{err: errBadResponse}
		}
		return response{result: append([]byte(nil), m.result...)}
	}
	var e struct {
		Error
		Code *Code `json:"code"`
	}
	if err := jsonspan.Unmarshal(m.err, &e); err != nil || e.Code == nil {
		return response{err: errBadResponse}
	}
	e.Error.Code = *e.Code
	if len(e.Message) > maxErrorMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxErrorMessage], "")
	}
	return response{err: &e.Error}
}

// encode returns v as JSON. Raw messages are taken as they are.
func encode(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok && len(raw) > 0 {
		return raw, nil
	}
	return json.Marshal(v)
}

// encodeRequest returns a request, or a notification if id is 0.
func encodeRequest(id int64, method string, params any) ([]byte, error) {
	var raw []byte
	if params != nil {
		var err error
		if raw, err = encode(params); err != nil {
			return nil, err
		}
	}
	msg := make([]byte, 0, len(raw)+len(method)+80)
	msg = append(msg, `{"jsonrpc":"2.0",`...)
	if id != 0 {
		msg = append(msg, `"id":`...)
		msg = strconv.AppendInt(msg, id, 10)
		msg = append(msg, ',')
	}
	msg = append(msg, `"method":`...)
	msg = jsonspan.AppendQuoteString(msg, method)
	if raw != nil {
		msg = append(msg, `,"params":`...)
		msg = append(msg, raw...)
	}
	return append(msg, '}'), nil
}

// EncodeNotification returns a notification, for [Options.Source] and [Peer.SendRaw]. nil
// params are left out.
func EncodeNotification(method string, params any) ([]byte, error) {
	return encodeRequest(0, method, params)
}

// encodeReply returns the reply to the request with the id, null if nil. kind is "result"
// or "error", value its encoded value.
func encodeReply(id []byte, kind string, value []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	msg := make([]byte, 0, len(id)+len(value)+40)
	msg = append(msg, `{"jsonrpc":"2.0","id":`...)
	msg = append(msg, id...)
	msg = append(msg, `,"`...)
	msg = append(msg, kind...)
	msg = append(msg, `":`...)
	msg = append(msg, value...)
	return append(msg, '}')
}
