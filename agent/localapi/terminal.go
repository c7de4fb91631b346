package localapi

import (
	"time"

	"tether/agent/verdict"
	"tether/platform/proc"
	"tether/problems"
	"tether/vocab"
)

// Terminal is one terminal as lists show it.
type Terminal struct {
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Title            string         `json:"title"`
	Command          []string       `json:"command"`
	Cwd              string         `json:"cwd"`
	Cols             int            `json:"cols"`
	Rows             int            `json:"rows"`
	Owner            string         `json:"owner"`
	Visible          bool           `json:"visible"`
	Private          bool           `json:"private"`
	Notice           string         `json:"notice,omitempty"` // what is not as the person asked
	LentTo           []string       `json:"lent_to"`
	Loans            []Loan         `json:"loans"`             // in the order of lent_to
	Kept             []KeptAt       `json:"kept,omitempty"`    // offline hosts that may still keep the text
	Door             string         `json:"door,omitempty"`    // the door that started the terminal
	Adopted          *vocab.Adopted `json:"adopted,omitempty"` // for a terminal that reads another program's pane
	Pid              int            `json:"pid"`
	Started          time.Time      `json:"started"`
	Exit             *vocab.Exit    `json:"exit,omitempty"`    // absent while the terminal runs
	Running          string         `json:"running,omitempty"` // the command line that the shell is running
	Bytes            int64          `json:"bytes"`             // of output so far
	Retained         int64          `json:"retained"`          // newest bytes that are kept
	Attached         int            `json:"attached"`          // people
	Outlives         bool           `json:"held"`              // it outlives the daemon
	Lost             int64          `json:"lost_bytes"`        // output that was not recorded
	CommandDetection bool           `json:"command_detection"` // the shell reports them
	vocab.State
	CommandBytes map[int][]byte `json:"command_bytes,omitempty"` // arguments that are not UTF-8, by index
	CwdBytes     []byte         `json:"cwd_bytes,omitempty"`
	Port         int            `json:"port,omitempty"`      // that it was given at its start
	Listening    []Listening    `json:"listening,omitempty"` // if requested and the system tells
	// Checkout is only in lists. Its texts are empty if a file system does not answer.
	Checkout *vocab.Checkout `json:"checkout,omitempty"`
}

// TerminalList is the answer to a list.
type TerminalList struct {
	SchemaVersion int           `json:"schema_version"`
	Terminals     []Terminal    `json:"terminals"`
	Waiting       int           `json:"approvals_waiting"`
	Declared      []Declared    `json:"declared,omitempty"` // the terminals of the configuration, in its order
	Crowded       []Connections `json:"crowded,omitempty"`  // agents whose further connections are refused
}

// SpawnRequest starts a terminal.
type SpawnRequest struct {
	// Command is the argv. Empty with Shell set means the person's own login shell.
	Command []string `json:"command,omitempty"`
	// Line is a line for the system's shell (sh -c) instead of a Command.
	Line  string `json:"line,omitempty"`
	Shell bool   `json:"shell,omitempty"` // start it as a login shell
	// NoIntegration starts a shell without the scripts that report commands.
	NoIntegration bool `json:"no_integration,omitempty"`
	// Env is the whole environment, NAME=value. Absent means the environment of the
	// person's interactive login.
	Env []string `json:"env,omitempty"`
	// SetEnv is added to the environment, NAME=value; the last value of a name wins.
	SetEnv  []string `json:"set_env,omitempty"`
	Name    string   `json:"name,omitempty"`
	Cwd     string   `json:"cwd"` // absolute
	Cols    uint16   `json:"cols,omitempty"`
	Rows    uint16   `json:"rows,omitempty"`
	Private bool     `json:"private,omitempty"`
	OnSlow  string   `json:"on_slow,omitempty"` // "lag" or "hold"; absent means the owner's configured value
	// Port asks for a TCP port: "auto" for a free one, or a number. The command gets it
	// as PORT, and in place of each {port} in its arguments. With FeaturePort.
	Port string `json:"port,omitempty"`
	// LendTo names hosts; absent means the default host, if there is one and the terminal
	// is not private. An empty list means none.
	LendTo []string `json:"lend_to,omitzero"`
	// ForwardBrowser sets the variable with which the command's dev server prints errors
	// of the page, or says in the terminal's notice what to change for that. With
	// FeatureForwardBrowser.
	ForwardBrowser bool `json:"forward_browser,omitempty"`
	// Leased binds the terminal to its followers: it is killed some seconds after the
	// last Follow with Lease has ended, or some seconds after its start if none has
	// begun.
	Leased bool `json:"leased,omitempty"`
	// Feed gives the command a pipe as its standard input. The client fills it, see
	// Controls of ControlFed; it ends some seconds after the start if nobody does.
	Feed bool `json:"feed,omitempty"`
	// Limits are the umask, nice value and soft limits of the caller, for the command.
	// Absent means the umask 022, or a stricter one that the person's login has, and the
	// daemon's others. With FeatureLimits.
	Limits *proc.Limits `json:"limits,omitempty"`
	// CommandBytes, EnvBytes and SetEnvBytes have, by their index, the elements of
	// Command, Env and SetEnv that are not UTF-8, and CwdBytes has such a Cwd. They
	// replace the text, which only shows what it can. With FeatureBytes.
	CommandBytes map[int][]byte `json:"command_bytes,omitempty"`
	EnvBytes     map[int][]byte `json:"env_bytes,omitempty"`
	SetEnvBytes  map[int][]byte `json:"set_env_bytes,omitempty"`
	CwdBytes     []byte         `json:"cwd_bytes,omitempty"`
	// Door is the door through which an agent's request came, for the policy: "cli" (the
	// default) or "acp".
	Door string `json:"door,omitempty"`
	// Attaches says that the client attaches a terminal at once, which answers what the
	// program asks. It is sent as attaches=1 in the query, which older daemons ignore.
	Attaches bool `json:"-"`
	// Approved names the person or program that approved exactly this request at that
	// door.
	Approved string `json:"approved,omitempty"`
}

// CommandList is the answer to a list of commands, oldest first.
type CommandList struct {
	SchemaVersion    int             `json:"schema_version"`
	CommandDetection bool            `json:"command_detection"`
	Commands         []vocab.Command `json:"commands"`
}

// Listening is a TCP port on which a program of a terminal listens.
type Listening struct {
	Port    int    `json:"port"`
	Address string `json:"address"`
	Pid     int    `json:"pid"`
	URL     string `json:"url,omitempty"` // for a browser here
}

// Ports are the listening ports of a terminal, or of this user's programs, in the order
// of their numbers.
type Ports struct {
	SchemaVersion int        `json:"schema_version"`
	ID            string     `json:"id,omitempty"` // of the terminal for which they were requested
	Ports         []UserPort `json:"ports"`
}

// UserPort is a TCP port on which a program of this user listens. One of the answer for
// a certain terminal has only what Listening has.
type UserPort struct {
	Listening
	Command   []string        `json:"command,omitempty"`   // argv, if the system tells; at most 50 words of 500 bytes
	Directory string          `json:"directory,omitempty"` // the program's, else its terminal's
	Checkout  *vocab.Checkout `json:"checkout,omitempty"`
	Terminal  string          `json:"terminal,omitempty"`
	Name      string          `json:"name,omitempty"`
	Outside   bool            `json:"outside,omitempty"` // the program is in no running terminal
	Since     time.Time       `json:"since,omitzero"`
	Adopt     string          `json:"adopt,omitempty"`   // what to give to tether adopt
	Restart   []string        `json:"restart,omitempty"` // what to give to tether run once it was ended
}

// Screen is a terminal's screen.
type Screen struct {
	SchemaVersion int      `json:"schema_version"`
	Cols          int      `json:"cols"`
	Rows          int      `json:"rows"`
	CursorCol     int      `json:"cursor_col"`         // from 0
	CursorRow     int      `json:"cursor_row"`         // from 0
	Text          string   `json:"text"`               // the rows, without blanks at their ends and without empty rows at the bottom
	Coloured      []string `json:"coloured,omitempty"` // the same rows with SGR sequences, if requested
	Truncated     bool     `json:"truncated"`          // a part of the screen is not known, because earlier output is lost
	Masked        int      `json:"masked"`             // as in ProblemList
}

// Waited is the result of a wait.
type Waited struct {
	SchemaVersion int            `json:"schema_version"`
	ID            string         `json:"id"`
	Reason        string         `json:"reason"` // pattern, idle, command, port, url, exit or timeout
	ElapsedMs     int64          `json:"elapsed_ms"`
	Line          string         `json:"line,omitempty"`
	Command       *vocab.Command `json:"command,omitempty"`
	Address       string         `json:"address,omitempty"`  // the address on which the port is open
	Listener      string         `json:"listener,omitempty"` // "this terminal" or "another program", if known
	Status        int            `json:"status,omitempty"`   // HTTP status of the URL's last answer
	Detail        string         `json:"detail,omitempty"`   // why the URL was not answered with 2xx, or that another program has the port
	Exit          *vocab.Exit    `json:"exit,omitempty"`
	Cursor        int64          `json:"cursor"`           // raw offset of what was examined
	Masked        int            `json:"masked,omitempty"` // places masked for an agent
}

// Problem is one complaint of a tool about a file.
type Problem struct {
	Tool      string `json:"tool"`
	File      string `json:"file,omitempty"`   // relative to the command's directory
	Line      int    `json:"line,omitempty"`   // from 1
	Column    int    `json:"column,omitempty"` // as the tool counts
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
	Package   string `json:"package,omitempty"` // the runner's prefix of these lines
	Severity  string `json:"severity"`          // error, warning or info
	Code      string `json:"code,omitempty"`    // the tool's
	Href      string `json:"href,omitempty"`    // the tool's page about the code
	Message   string `json:"message"`
	First     int64  `json:"first"`           // raw offset of the first report
	Last      int64  `json:"last"`            // raw offset after the last report
	Count     int    `json:"count"`           // of reports
	Taken     string `json:"taken,omitempty"` // who has the port, or that it is free now
}

// ProblemsOf returns problems as this interface has them.
func ProblemsOf(all []problems.Problem) []Problem {
	out := make([]Problem, 0, len(all))
	for _, p := range all {
		out = append(out, Problem{
			Tool: p.Tool, File: p.File, Package: p.Package, Line: p.Line, Column: p.Column, EndLine: p.EndLine, EndColumn: p.EndCol, Severity: string(p.Severity),
			Code: p.Code, Href: p.Href, Message: p.Message, First: p.First, Last: p.Last, Count: p.Count, Taken: p.Taken,
		})
	}
	return out
}

// Text is [verdict.ProblemText].
func (p *Problem) Text() string {
	is := p.problem()
	return verdict.ProblemText(&is)
}

// problem has what a line of text about a problem needs.
func (p *Problem) problem() problems.Problem {
	return problems.Problem{File: p.File, Line: p.Line, Column: p.Column, Severity: problems.Severity(p.Severity), Code: p.Code, Message: p.Message}
}

// ProblemList is the answer to a question about a terminal's problems.
type ProblemList struct {
	SchemaVersion int       `json:"schema_version"`
	Problems      []Problem `json:"problems"`
	Errors        int       `json:"errors"`   // among all known problems
	Warnings      int       `json:"warnings"` // among all known problems
	Cursor        int64     `json:"cursor"`   // for since next time
	More          bool      `json:"more"`
	Cleared       bool      `json:"cleared"`      // some were cleared after since
	Dropped       int       `json:"dropped"`      // problems for which there was no room
	Unseen        int64     `json:"unseen_bytes"` // bytes dropped before they could be examined
	Masked        int       `json:"masked"`       // places in the output that are masked
	Exited        bool      `json:"exited"`
	Succeeded     bool      `json:"succeeded"`    // a known tool has reported no errors
	Unrecognised  []string  `json:"unrecognised"` // the last lines that look like errors and fit no known format
}

// Digest sums up a terminal's output.
type Digest struct {
	SchemaVersion int    `json:"schema_version"`
	Text          string `json:"text"`   // at most 8 KB
	Masked        int    `json:"masked"` // as in ProblemList
}

// FetchRequest asks for a page of a server that runs in a terminal, see package fetch.
type FetchRequest struct {
	Port     int               `json:"port,omitempty"`    // 0: the only one
	Path     string            `json:"path,omitempty"`    // with the query; "": /
	Method   string            `json:"method,omitempty"`  // GET, HEAD or OPTIONS; "": GET
	Headers  map[string]string `json:"headers,omitempty"` // those that may cross
	Readable bool              `json:"readable,omitempty"`
}

// Header is one header of an answer.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Fetched is a page, and what the terminal printed meanwhile.
type Fetched struct {
	SchemaVersion int       `json:"schema_version"`
	URL           string    `json:"url"`
	Status        int       `json:"status"`
	Headers       []Header  `json:"headers"`
	RedirectsTo   string    `json:"redirects_to,omitempty"` // another server, which was not asked
	Body          []byte    `json:"body"`                   // at most 1 MiB, in base64; with readable, the text of HTML
	Size          int64     `json:"body_bytes"`             // what was read of the server's body, at most 8 MiB
	Trouble       string    `json:"trouble,omitempty"`      // why the body ended early
	FirstByteMs   int64     `json:"first_byte_ms"`
	TookMs        int64     `json:"took_ms"`
	Printed       string    `json:"printed,omitempty"`  // by the terminal meanwhile: the newest 4 KB, masked
	Problems      []Problem `json:"problems,omitempty"` // new ones, at most 10
}
