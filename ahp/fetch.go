package ahp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// CallFetch is the PortsCall of a call of the tool fetch_page, which the machine carries
// out on the port of the request: a POST whose body is FetchParams and whose answer is a
// FetchResult.
const CallFetch = "fetch"

// Bounds of CallFetch, in bytes.
const (
	MaxFetchArguments = 32 << 10
	MaxFetchAnswer    = 3 << 20 // of FetchResult.Answer: a body of 1 MiB with escapes, and what was printed
	MaxFetchBlob      = 1 << 20
	// MaxFetchResult bounds a FetchResult as JSON.
	MaxFetchResult = MaxFetchAnswer + MaxFetchBlob*4/3 + 16<<10

	MaxFetchError = 2 << 10 // of FetchResult.Error
	maxFetchType  = 128
)

// FetchParams are the params of a call of fetch_page.
type FetchParams struct {
	// Arguments are those of the tool. The terminal and the port are those of the
	// request, whatever is said here.
	Arguments json.RawMessage `json:"arguments"`
	Shows     int64           `json:"shows,omitempty"` // bytes of the answer that the reader is shown; 0: not known
}

// Validate returns an error that names the first invalid field.
func (p FetchParams) Validate() error {
	switch {
	case len(p.Arguments) > MaxFetchArguments:
		return fmt.Errorf("arguments have %d bytes, at most %d are allowed", len(p.Arguments), MaxFetchArguments)
	case p.Shows < 0 || p.Shows > MaxFetchAnswer:
		return fmt.Errorf("shows is %d, want 0 to %d", p.Shows, MaxFetchAnswer)
	}
	return nil
}

// FetchResult is the tool's answer, or why there is none, for the reader.
type FetchResult struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Blob   *FetchBlob      `json:"blob,omitempty"` // a body that is not text; nil for none
	Error  string          `json:"error,omitempty"`
}

// FetchBlob is a body that is not text.
type FetchBlob struct {
	Type string `json:"type"` // media type
	Data []byte `json:"data"`
}

// Validate returns an error that names the first invalid field.
func (r FetchResult) Validate() error {
	switch b := r.Blob; {
	case len(r.Answer) > MaxFetchAnswer:
		return fmt.Errorf("an answer has %d bytes, at most %d are allowed", len(r.Answer), MaxFetchAnswer)
	case r.Error == "" && !bytes.HasPrefix(r.Answer, []byte("{")):
		return errors.New("the answer is no object")
	case b != nil && len(b.Data) > MaxFetchBlob:
		return fmt.Errorf("a body has %d bytes, at most %d are allowed", len(b.Data), MaxFetchBlob)
	case b != nil && (len(b.Type) > maxFetchType || strings.ContainsFunc(b.Type, func(c rune) bool { return c <= ' ' || c >= 0x7f })):
		return fmt.Errorf("type %.40q is no media type", b.Type)
	}
	return checkLength("error", r.Error, MaxFetchError)
}
