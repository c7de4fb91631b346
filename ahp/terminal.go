package ahp

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Values of Lifecycle.Status. Others may come from newer hosts and count as running.
const (
	StatusRunning = "running"
	StatusExited  = "exited"
)

// Lifecycle says whether a terminal's process runs. The zero value means running.
type Lifecycle struct {
	Status   string `json:"status"`
	ExitCode *int64 `json:"exitCode,omitempty"` // of an exited terminal; nil = killed, no code known
}

// Exited returns the lifecycle of an exited terminal; code may be nil.
func Exited(code *int64) Lifecycle { return Lifecycle{Status: StatusExited, ExitCode: code} }

// Exited reports whether the process has ended.
func (l Lifecycle) Exited() bool { return l.Status == StatusExited }

// MarshalJSON implements json.Marshaler.
func (l Lifecycle) MarshalJSON() ([]byte, error) {
	type fields Lifecycle
	l.Status = cmp.Or(l.Status, StatusRunning)
	return marshal(fields(l)), nil
}

// TerminalInfo is a terminal in the catalogue of the root state.
type TerminalInfo struct {
	Resource        string          `json:"resource"` // URI to subscribe to
	Title           string          `json:"title"`
	Claim           Claim           `json:"claim"`
	Lifecycle       Lifecycle       `json:"lifecycle"`
	ExecutionTarget ExecutionTarget `json:"executionTarget,omitempty"`
	Meta            TerminalMeta    `json:"_meta,omitzero"`
}

type infoFields TerminalInfo

// infoWire shadows Lifecycle: of its two end members at most one is written.
type infoWire struct {
	infoFields
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	ExitCode  *int64     `json:"exitCode,omitempty"`
}

// unknownCode stands for an exit without a code in the old shape, in which a terminal
// without a code looks running.
const unknownCode = -1

// endFor returns the members that say in a version's shape whether the terminal has
// ended.
func endFor(l Lifecycle, version string) (*Lifecycle, *int64) {
	switch {
	case HasLifecycle(version):
		return &l, nil
	case l.Exited() && l.ExitCode == nil:
		return nil, new(int64(unknownCode))
	case l.Exited():
		return nil, l.ExitCode
	}
	return nil, nil
}

// endOf returns the Lifecycle that the members of either shape mean.
func endOf(l *Lifecycle, code *int64) Lifecycle {
	switch {
	case l != nil:
		return *l
	case code != nil:
		return Exited(code)
	}
	return Lifecycle{Status: StatusRunning}
}

// MarshalFor encodes the entry in the shape of a negotiated protocol version.
func (t TerminalInfo) MarshalFor(version string) []byte { return marshal(t.wire(version)) }

func (t TerminalInfo) wire(version string) infoWire {
	w := infoWire{infoFields: infoFields(t)}
	w.Lifecycle, w.ExitCode = endFor(t.Lifecycle, version)
	return w
}

// MarshalJSON implements json.Marshaler in the newest shape.
func (t TerminalInfo) MarshalJSON() ([]byte, error) { return t.MarshalFor(Versions()[0]), nil }

// UnmarshalJSON reads either shape.
func (t *TerminalInfo) UnmarshalJSON(raw []byte) error {
	var w infoWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*t = TerminalInfo(w.infoFields)
	t.Lifecycle = endOf(w.Lifecycle, w.ExitCode)
	return nil
}

// TerminalState is the state of a terminal channel.
type TerminalState struct {
	Title                    string          `json:"title"`
	Cwd                      string          `json:"cwd,omitempty"`  // URI or, from VS Code, a plain path; "" = unknown
	Cols                     int64           `json:"cols,omitempty"` // 0 = unknown
	Rows                     int64           `json:"rows,omitempty"` // 0 = unknown
	Content                  []ContentPart   `json:"content"`        // the retained tail of the stream
	Lifecycle                Lifecycle       `json:"lifecycle"`
	Claim                    Claim           `json:"claim"`
	SupportsCommandDetection bool            `json:"supportsCommandDetection,omitempty"`
	IsPty                    *bool           `json:"isPty,omitempty"` // false = plain text without control sequences
	ExecutionTarget          ExecutionTarget `json:"executionTarget,omitempty"`
	Meta                     TerminalMeta    `json:"_meta,omitzero"`
}

type stateFields TerminalState

type stateWire struct {
	stateFields
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	ExitCode  *int64     `json:"exitCode,omitempty"`
}

// MarshalFor encodes the state in the shape of a negotiated protocol version.
func (s TerminalState) MarshalFor(version string) []byte {
	w := stateWire{stateFields: stateFields(s)}
	w.Lifecycle, w.ExitCode = endFor(s.Lifecycle, version)
	w.Content = list(s.Content)
	return marshal(w)
}

// MarshalJSON implements json.Marshaler in the newest shape.
func (s TerminalState) MarshalJSON() ([]byte, error) { return s.MarshalFor(Versions()[0]), nil }

// UnmarshalJSON reads either shape.
func (s *TerminalState) UnmarshalJSON(raw []byte) error {
	var w stateWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*s = TerminalState(w.stateFields)
	s.Content = list(s.Content)
	s.Lifecycle = endOf(w.Lifecycle, w.ExitCode)
	return nil
}

// Text returns the terminal's retained stream: the text of all parts, in order.
func (s TerminalState) Text() string {
	n := 0
	for _, p := range s.Content {
		n += len(p.Text())
	}
	b := make([]byte, 0, n)
	for _, p := range s.Content {
		b = append(b, p.Text()...)
	}
	return string(b)
}

// Clone returns a copy with a Content of its own. Both share what pointers point to,
// which is never changed.
func (s TerminalState) Clone() TerminalState {
	s.Content = slices.Clone(s.Content)
	return s
}

// FileURI returns the file URI of an absolute path of Unix or Windows. It returns "" if
// the URI would be longer than MaxCwd; escaping may make a path three times as long. Any
// other text, such as a URI or "", is returned unchanged.
func FileURI(path string) string {
	switch {
	case isDrive(path):
		path = "/" + strings.ReplaceAll(path, `\`, "/")
	case strings.HasPrefix(path, `\\`): // a UNC path
		path = strings.ReplaceAll(path, `\`, "/")
	case !strings.HasPrefix(path, "/"):
		return path
	}
	uri := (&url.URL{Scheme: "file", Path: path}).String()
	if len(uri) > MaxCwd {
		return ""
	}
	return uri
}

// PathOf returns the path of a file URI of this machine. If the URI has a drive, that is
// a Windows path. Any other text, such as a plain path or another machine's URI, is
// returned unchanged.
func PathOf(cwd string) string {
	u, err := url.Parse(cwd)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return cwd
	}
	if drive := u.Path[1:]; isDrive(drive) {
		return strings.ReplaceAll(drive, "/", `\`)
	}
	return u.Path
}

// isDrive reports whether a path begins with a Windows drive: C:\x, C:/x or C: alone.
func isDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && (path[0]|0x20) >= 'a' && (path[0]|0x20) <= 'z' && (len(path) == 2 || path[2] == '\\' || path[2] == '/')
}
