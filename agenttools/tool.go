package agenttools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"tether/internal/jsonspan"
	"tether/problems"
)

// Options configures a Set. Terminals is required.
type Options struct {
	Terminals Terminals
	// Machine is the name of the machine on which all terminals run, for calls that name
	// a terminal as machine/name. It is "" if the machine is not known, or each terminal
	// has its own.
	Machine string
	// Loopback lets agents wait for a port or URL of this machine's loopback interface.
	// It makes sense where the terminals run on this machine.
	Loopback bool
	// Waits bounds the number of calls of wait_terminal at a time; 0 means 64.
	Waits int
	// Matchers are what problems are found with; nil means the matchers of known tools.
	Matchers *problems.Set
	// Bug, if not nil, is called with the stack when a call has panicked. It must not
	// block for long.
	Bug func(tool string, stack []byte)
}

// Set has the tools of one principal. It is safe for concurrent use.
type Set struct {
	opts     Options
	control  Controller // nil if the principal may only read
	runs     Runs       // nil if none are kept here
	far      FarKeeper  // nil if no other machines keep runs
	tools    []tool
	waits    chan struct{} // a slot for each wait in progress
	matching *Matching

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// New returns a principal's tools. Tools that start and control terminals are among them
// only if Options.Terminals is a Controller, restart_terminal only if it is a Restarter
// whose MayRestart returns true, and fetch_page only if it is a Fetcher whose MayFetch
// does, or a FarFetcher.
func New(o Options) *Set {
	o.Waits = cmp.Or(o.Waits, 64)
	s := &Set{opts: o, waits: make(chan struct{}, o.Waits), matching: NewMatching(o.Matchers, o.Bug)}
	s.control, _ = o.Terminals.(Controller)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if k, ok := o.Terminals.(Keeper); ok {
		s.runs = k.Runs()
	}
	s.far, _ = o.Terminals.(FarKeeper)
	s.tools = []tool{s.listTool(), s.readTool(), s.waitTool(), s.problemsTool()}
	if s.runs != nil || s.far != nil {
		s.tools = append(s.tools, s.runTools()...)
	}
	if f, ok := o.Terminals.(Fetcher); ok && f.MayFetch() {
		s.tools = append(s.tools, s.fetchTool(f))
	}
	if f, ok := o.Terminals.(FarFetcher); ok {
		s.tools = append(s.tools, s.farFetchTool(f))
	}
	if s.control != nil {
		s.tools = append(s.tools, s.spawnTool(), s.promoteTool(), s.killTool(), s.writeTool(), s.signalTool())
	}
	if r, ok := o.Terminals.(Restarter); ok && r.MayRestart() {
		s.tools = append(s.tools, s.restartTool(r))
	}
	return s
}

// Close ends the running calls without waiting for them, and closes the problem finder,
// whose goroutines it waits for.
func (s *Set) Close() {
	s.cancel()
	s.matching.Close()
}

// Terminals returns Options.Terminals.
func (s *Set) Terminals() Terminals { return s.opts.Terminals }

// Matching returns the problem finder of this set's tools. The set closes it.
func (s *Set) Matching() *Matching { return s.matching }

// ReadOnly reports whether the principal may neither start nor control terminals.
func (s *Set) ReadOnly() bool { return s.control == nil }

// Tool is the description of a tool for its callers.
type Tool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage // JSON Schema of the arguments, which are an object
	ReadOnly                 bool            // a call changes nothing
	Destructive              bool            // a call may end or overwrite something; false if ReadOnly
	Idempotent               bool            // calling it again changes nothing more
	OpenWorld                bool            // a call may have effects beyond the terminals
	Long                     bool            // its answer may have more than 50 KB
	Hint                     string          // words that a search for the tool has; "" for a tool that few look for
}

// tool is one tool with the function that carries out a call. The error's text is for the
// model.
type tool struct {
	Tool
	denied said // the answer to a call that fails with ErrDenied, if not ""
	call   func(ctx context.Context, c call) (Result, error)
}

// call is one call of a tool.
type call struct {
	args json.RawMessage
	Caller
}

// Caller says how a call is answered. The zero value is a caller of which nothing is
// known.
type Caller struct {
	// Progress, if not nil, is told that a call still runs.
	Progress Progress
	// Shows is how many bytes of an answer's text the caller shows its model whole; 0
	// means 16,000. read_terminal, wait_terminal and problems return no more unless they
	// are asked to. Less than 2,000 counts as 2,000.
	Shows int
}

// Bounds of the text of an answer for which no size was asked, in bytes.
const (
	defaultShown = 16_000
	leastShown   = 2_000
)

// Progress reports to the caller, from time to time until stop is called, that a call
// still runs, and what it does.
type Progress func(ctx context.Context, what string) (stop func())

// Result is the outcome of a call. Answer is a []Metadata, *ReadAnswer, *WaitAnswer,
// *ProblemsAnswer, *RunsAnswer, *FoundAnswer, *FetchAnswer, Spawned, Promoted, Killed,
// Written or Signaled, by the tool that was called, or what Runs or FarKeeper returned.
type Result struct {
	Answer     any
	Structured any   // answer with more fields, for programs; nil if Answer has everything
	Untrusted  bool  // the answer holds output of programs
	Blob       *Blob // data beside the text; nil for none
	// Aside, if not nil, is a further text for the model, as JSON. AsideFirst puts it
	// before the answer: the answer is longer than what the caller shows.
	Aside      any
	AsideFirst bool
}

// Text returns the answer as the JSON that models get, without escapes for <, > and &.
func (r Result) Text() (string, error) { return textOf(r.Answer) }

// Texts returns all texts that models get, in their order.
func (r Result) Texts() (all []string, err error) {
	body, err := r.Text()
	if err != nil || r.Aside == nil {
		return []string{body}, err
	}
	aside, err := textOf(r.Aside)
	if r.AsideFirst {
		return []string{aside, body}, err
	}
	return []string{body, aside}, err
}

func textOf(part any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(part)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Tools returns the tools that the principal may use.
func (s *Set) Tools() []Tool {
	var all []Tool
	for _, t := range s.tools {
		all = append(all, t.Tool)
	}
	return all
}

// Call calls a tool. args is a JSON object, or empty. Call blocks until the tool has
// answered, ctx ends or the set is closed. The error's text is for the model. If a call
// panics, it returns ErrBug, and other calls go on.
func (s *Set) Call(ctx context.Context, name string, args json.RawMessage, by Caller) (r Result, err error) {
	i := slices.IndexFunc(s.tools, func(t tool) bool { return t.Name == name })
	if i < 0 {
		return Result{}, fmt.Errorf("no such tool: %.40q", name)
	}
	if by.Progress == nil {
		by.Progress = func(context.Context, string) func() { return func() {} }
	}
	by.Shows = max(cmp.Or(by.Shows, defaultShown), leastShown)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	defer s.Survive(name, func() { r, err = Result{}, ErrBug })
	r, err = s.tools[i].call(ctx, call{args, by})
	if denied := s.tools[i].denied; denied != "" && errors.Is(err, ErrDenied) {
		err = denied
	}
	return r, err
}

// ErrBug is the error of a call that has panicked because of a bug in this program.
var ErrBug = errors.New("this call ran into a bug in tether and did nothing more; tether's log has the details")

// Survive is to be deferred by a call. If the call panics, Survive calls Options.Bug, and
// then instead, which sets the call's answer. It is needed because calls read the output
// of any program, in a process that others depend on.
func (s *Set) Survive(tool string, instead func()) {
	if recover() == nil {
		return
	}
	if s.opts.Bug != nil {
		s.opts.Bug(tool, debug.Stack())
	}
	instead()
}

func (c call) decode(into any) error { return Decode(c.args, into) }

// Decode reads the arguments of a call into a struct. 20.0 is a whole number. Empty
// arguments count as an empty object. A model can act on the text of its errors.
func Decode(args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if err := jsonspan.CheckText(args); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(jsonspan.Whole(args)))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("the arguments must be an object, not %s", wrong.Value)
	case errors.As(err, &wrong):
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // without the embedded struct's
		return fmt.Errorf("%s must be %s, not %s", name, kindOf(wrong.Type), wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown argument %s; known arguments: %s", name, strings.Join(fields(into), ", "))
	}
	return fmt.Errorf("arguments: %w", err)
}

func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a " + t.Kind().String()
}

// fields returns the names of the arguments that a struct takes.
func fields(of any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// target is the argument of most tools that names a terminal, by its id or a name. After
// resolve it is an id, unless the name is unknown.
type target struct {
	TerminalID string `json:"terminalId"`
}

// terminalSchema is the JSON Schema of target.
const terminalSchema = `"terminalId":{"type":"string","description":"id or name from list_terminals, such as pty-abc123 or dev-server"}`

const targetSchema = `{"type":"object","properties":{` + terminalSchema + `},"required":["terminalId"],"additionalProperties":false}`

func (t target) check() error {
	if t.TerminalID == "" {
		return errors.New("terminalId is missing; list_terminals lists the terminals")
	}
	return nil
}

// named returns the argument itself, of whatever struct it is a part.
func (t *target) named() *target { return t }

// on returns the function for calls about one terminal: it has the decoded arguments,
// with the terminal's id if there is one of that name. Errors are put in the words of the
// tools.
func on[A any, P interface {
	*A
	named() *target
}](s *Set, f func(context.Context, call, P) (Result, error)) func(context.Context, call) (Result, error) {
	return func(ctx context.Context, c call) (Result, error) {
		var in P = new(A)
		if err := c.decode(in); err != nil {
			return Result{}, err
		}
		if err := s.resolve(in.named()); err != nil {
			return Result{}, err
		}
		r, err := f(ctx, c, in)
		return r, about(in.named().TerminalID, err)
	}
}

// reading is on for calls that read the terminal.
func reading[A any, P interface {
	*A
	named() *target
}](s *Set, f func(context.Context, call, P, Terminal) (Result, error)) func(context.Context, call) (Result, error) {
	return on(s, func(ctx context.Context, c call, in P) (Result, error) {
		t, err := s.opts.Terminals.Open(in.named().TerminalID)
		if err != nil {
			return Result{}, err
		}
		return f(ctx, c, in, t)
	})
}

// said is an error whose text the tools' contract prescribes as a sentence, with a
// capital letter.
type said string

func (s said) Error() string { return string(s) }

// about returns an error of the terminal id in the words of the tools.
func about(id string, err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return said(fmt.Sprintf("Terminal not found: %.60q; list_terminals lists them", id))
	case errors.Is(err, ErrExited):
		return fmt.Errorf("terminal %s has exited; read_terminal shows what it printed", id)
	}
	return err
}

// inRange returns an error if a number is out of range.
func inRange(name string, v, lo, hi int64) error {
	if v < lo || v > hi {
		return fmt.Errorf("%s %d is out of range, it must be %d to %d", name, v, lo, hi)
	}
	return nil
}

func oneOf(name, v string, words ...string) error {
	if !slices.Contains(words, v) {
		return fmt.Errorf("%s %.40q must be one of %s", name, v, strings.Join(words, ", "))
	}
	return nil
}
