package ahp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MethodRuns is a request of the host to a machine whose marker has runs: it has a call
// about what the machine's terminals have printed before carried out, for a reader at the
// host. Params are RunsParams, the result is a RunsResult.
const MethodRuns = "x-tether/runs"

// Bounds of MethodRuns.
const (
	MaxRunsArguments = 16 << 10  // bytes
	MaxRunsAnswer    = 256 << 10 // bytes of RunsResult.Answer
	MaxReaderNames   = 80        // names of a Reader
	MaxRunsError     = 2 << 10   // bytes of RunsResult.Error
)

// Reader says who asks, in the words of the machine's grants.
type Reader struct {
	// Names are the reader's name and groups, in the form of Grant.To. A denial of the
	// first one counts.
	Names []string `json:"names,omitempty"`
	// Owner says that the reader sees the machine's terminals without a grant: as the
	// person to whom the machine belongs, as that person's agent, or because everybody at
	// the host sees everything.
	Owner bool `json:"owner,omitempty"`
	// Guest is the ID of the shared link by which the reader came, if it did: then it has
	// nothing but what that link is for, whatever the other fields say.
	Guest string `json:"guest,omitempty"`
}

// Validate returns an error that names the first invalid field.
func (r Reader) Validate() error {
	if len(r.Names) > MaxReaderNames {
		return fmt.Errorf("a reader has %d names, at most %d are allowed", len(r.Names), MaxReaderNames)
	}
	for _, name := range r.Names {
		if name == ToEveryone {
			continue
		}
		if err := CheckAudienceName(name, false); err != nil {
			return err
		}
	}
	if r.Guest != "" {
		return CheckShareID(r.Guest)
	}
	return nil
}

// RunsParams is the params of MethodRuns.
type RunsParams struct {
	Channel   string          `json:"channel,omitempty"` // of the terminal that the call is about, if it is one
	Reader    Reader          `json:"reader"`
	Tool      string          `json:"tool"` // list_runs, search_runs, compare_runs or verdict, or one that reads the run in the arguments
	Arguments json.RawMessage `json:"arguments"`
	Shows     int64           `json:"shows,omitempty"` // bytes of the answer that the reader is shown; 0: not known
}

// Validate returns an error that names the first invalid field.
func (p RunsParams) Validate() error {
	if p.Channel != "" {
		if err := CheckURI(p.Channel); err != nil {
			return err
		}
	}
	switch {
	case len(p.Tool) > MaxToolName:
		return checkLength("tool", p.Tool, MaxToolName)
	case len(p.Arguments) > MaxRunsArguments:
		return fmt.Errorf("arguments have %d bytes, at most %d are allowed", len(p.Arguments), MaxRunsArguments)
	case p.Reader.Guest != "":
		return errors.New("guests have no earlier runs")
	case p.Shows < 0 || p.Shows > MaxRunsAnswer:
		return fmt.Errorf("shows is %d, want 0 to %d", p.Shows, MaxRunsAnswer)
	}
	return p.Reader.Validate()
}

// RunsResult is the result of MethodRuns: the tool's answer, or why there is none, for
// the reader.
type RunsResult struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Unknown says that the call names something that does not exist for the reader.
	Unknown bool `json:"unknown,omitempty"`
}

// Validate returns an error that names the first invalid field.
func (r RunsResult) Validate() error {
	switch {
	case len(r.Answer) > MaxRunsAnswer:
		return fmt.Errorf("an answer has %d bytes, at most %d are allowed", len(r.Answer), MaxRunsAnswer)
	case r.Error == "" && !bytes.HasPrefix(r.Answer, []byte("{")):
		return errors.New("the answer is no object")
	}
	return checkLength("error", r.Error, MaxRunsError)
}
