package history

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/internal/jsonspan"
	"tether/problems"
	"tether/vocab"
)

// Run is what the list says of one run: a terminal from start to exit, or one command of
// a shell. All its texts are masked already.
type Run struct {
	ID       string          `json:"id"` // the terminal's, or TERMINAL.N for its command N
	Terminal string          `json:"terminal"`
	Command  int             `json:"command,omitempty"` // 0 for the terminal itself
	Name     string          `json:"name,omitempty"`
	Named    bool            `json:"named,omitempty"` // the name is declared, or the person has given it
	Line     string          `json:"line,omitempty"`  // the command line
	Dir      string          `json:"dir,omitempty"`   // at its start
	Owner    string          `json:"owner,omitempty"` // who started it, in the words of its recorder; "" is the person
	Checkout *vocab.Checkout `json:"checkout,omitempty"`
	Started  time.Time       `json:"started"`
	Ended    time.Time       `json:"ended,omitzero"`
	Exit     *vocab.Exit     `json:"exit,omitempty"`
	Lost     bool            `json:"lost,omitempty"`    // its end is not known: Ended is the time of its last text
	Start    int64           `json:"start"`             // text offset
	End      int64           `json:"end"`               // text offset, -1 while it runs
	Stopped  bool            `json:"stopped,omitempty"` // the person typed ^C shortly before its end
	Ready    bool            `json:"ready,omitempty"`
	Problems Problems        `json:"problems,omitzero"`
	Rounds   int             `json:"rounds,omitempty"` // of a watcher, of which there are notes
	// Size and Dropped are of a terminal that has ended: its bytes on disk, and how many
	// bytes of its text are not kept.
	Size int64 `json:"size,omitempty"`
	// Lent names the hosts to which a terminal is lent, or was at its exit, as its notes
	// do.
	Lent    []string `json:"lent,omitempty"`
	Dropped int64    `json:"dropped,omitempty"`
}

// Problems are the errors and warnings that a run printed.
type Problems struct {
	Errors   int                `json:"errors,omitempty"`
	Warnings int                `json:"warnings,omitempty"`
	First    []problems.Problem `json:"first,omitempty"` // at most MaxProblems
}

// MaxProblems bounds the problems that a run's record has.
const MaxProblems = 3

// Bounds of texts in records, in bytes. Longer ones are cut.
const (
	maxText = 4 << 10
	maxLine = 64 << 10 // of a line of the list, and of the notes
)

// Running reports whether the run goes on, as far as the list knows.
func (r Run) Running() bool { return r.Ended.IsZero() }

// Series is the key that runs of the same thing share: the name if somebody has chosen
// it, otherwise the command line; and the directory.
func (r Run) Series() string {
	if r.Named {
		return r.Name + "\x00" + r.Dir
	}
	return "\x00" + r.Line + "\x00" + r.Dir
}

// record is a Run as a line of the list. The id comes first, so that it is found without
// decoding the line.
type record struct {
	Run
	Reason vocab.ExitReason `json:"reason,omitempty"` // of Exit, whose own is not in JSON
}

func (r Run) encode() ([]byte, error) {
	for _, text := range []*string{&r.Name, &r.Line, &r.Dir, &r.Owner} {
		*text = clip.Text(*text, maxText)
	}
	r.Started, r.Ended = r.Started.UTC(), r.Ended.UTC()
	if len(r.Problems.First) > MaxProblems {
		r.Problems.First = r.Problems.First[:MaxProblems]
	}
	rec := record{Run: r}
	if r.Exit != nil {
		rec.Reason = r.Exit.Reason
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1] // the brace
	line = append(fmt.Appendf(line, sumForm, crc32.Checksum(line, castagnoli())), '\n')
	if len(line) > maxLine {
		return nil, fmt.Errorf("the record of run %s has %d bytes, at most %d", r.ID, len(line), maxLine)
	}
	return line, nil
}

// A line of the list ends with the CRC-32C of what is before, in eight digits.
const (
	sumBefore = `,"sum":"`
	sumAfter  = `"}`
	sumForm   = sumBefore + "%08x" + sumAfter
	sumLen    = len(sumBefore) + 8 + len(sumAfter)
)

// isWhole reports whether a line of the list is as it was written.
func isWhole(line []byte) bool {
	n := len(line) - sumLen
	if n < 0 || !bytes.HasPrefix(line[n:], []byte(sumBefore)) || !bytes.HasSuffix(line, []byte(sumAfter)) {
		return false
	}
	var sum [4]byte
	_, err := hex.Decode(sum[:], line[n+len(sumBefore):][:8])
	return err == nil && binary.BigEndian.Uint32(sum[:]) == crc32.Checksum(line[:n], castagnoli())
}

func decodeRun(line []byte) (Run, error) {
	var rec record
	if err := jsonspan.Unmarshal(line, &rec); err != nil {
		return Run{}, err
	}
	r := rec.Run
	if r.Exit != nil {
		r.Exit.Reason = rec.Reason
	}
	return r, r.check()
}

// check refuses records that this package would not write.
func (r Run) check() error {
	want := r.Terminal
	if r.Command > 0 {
		want += "." + strconv.Itoa(r.Command)
	}
	switch {
	case !isTerminal(r.Terminal) || r.ID != want || r.Command < 0:
		return fmt.Errorf("run %.80q is not the run of a terminal", r.ID)
	case r.Start < 0 || r.End < -1 || r.End >= 0 && r.End < r.Start:
		return fmt.Errorf("run %s is from %d to %d", r.ID, r.Start, r.End)
	}
	return nil
}

// isTerminal reports whether the text is an id that can name a terminal's directory.
func isTerminal(id string) bool {
	if len(id) < 2 || len(id) > 64 || id[0] == '-' {
		return false
	}
	for _, c := range []byte(id) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// Query chooses runs. Zero fields choose all.
type Query struct {
	Terminal string // this terminal and its commands
	Name     string // the run or terminal with this id, name or command line
	Dir      string // in this directory or below it
	Series   string // see Run.Series
	Since    time.Time
	Until    time.Time // runs that had begun before then; with Since, those that ran in between
}

// Matches reports whether the query chooses the run.
func (q Query) Matches(r *Run) bool {
	return (q.Terminal == "" || r.Terminal == q.Terminal) &&
		(q.Name == "" || r.Name == q.Name || r.ID == q.Name || r.Terminal == q.Name || r.Line == q.Name) &&
		(q.Dir == "" || isBelow(r.Dir, q.Dir)) &&
		(q.Series == "" || r.Series() == q.Series) &&
		(q.Since.IsZero() || r.Running() || !r.Ended.Before(q.Since)) &&
		(q.Until.IsZero() || r.Started.Before(q.Until))
}

// might returns a test of undecoded lines that is true for all that match, and quick.
func (q Query) might() func(line []byte) bool {
	var parts [][]byte
	part := func(format, text string) {
		if quoted, err := json.Marshal(text); err == nil {
			parts = append(parts, fmt.Appendf(nil, format, quoted[1:len(quoted)-1]))
		}
	}
	if q.Terminal != "" {
		part(`"terminal":"%s"`, q.Terminal)
	}
	if q.Name != "" {
		part(`"%s"`, q.Name)
	}
	if q.Dir != "" {
		part(`"dir":"%s`, q.Dir)
	}
	if _, rest, ok := strings.Cut(q.Series, "\x00"); ok {
		part(`"dir":"%s"`, rest[strings.LastIndexByte(rest, 0)+1:])
	}
	return func(line []byte) bool {
		for _, p := range parts {
			if !bytes.Contains(line, p) {
				return false
			}
		}
		return true
	}
}

func isBelow(dir, top string) bool {
	rest, ok := strings.CutPrefix(dir, top)
	return ok && (rest == "" || strings.HasSuffix(top, string(filepath.Separator)) || rest[0] == filepath.Separator)
}

// ErrUnknownRun is returned for a run that the history does not have, or not any more.
var ErrUnknownRun = errors.New("the history has no such run")

// NoteKind is what a Note is about.
type NoteKind string

// The kinds.
const (
	NoteCommand  NoteKind = "command"  // Command began
	NoteFinished NoteKind = "finished" // Command ended
	NoteSize     NoteKind = "size"     // Cols, Rows
	NoteDir      NoteKind = "dir"      // Dir
	NoteCheckout NoteKind = "checkout" // Checkout
	NoteLent     NoteKind = "lent"     // Host, Everybody, Grants, Denied: from here on
	NoteUnlent   NoteKind = "unlent"   // Host: from here on
	NoteForgot   NoteKind = "forgot"   // written by Forget: the next daemon adds nothing before here
	NoteRound    NoteKind = "round"    // a watcher has settled, or says something else: From, Began, Checkout, Problems
)

// Note is an event at a place in a terminal's text.
type Note struct {
	Off       int64           `json:"off"` // set by Writer.Note
	Time      time.Time       `json:"time"`
	Kind      NoteKind        `json:"kind"`
	Command   *vocab.Command  `json:"command,omitempty"` // its offsets are text offsets
	Cols      int             `json:"cols,omitempty"`
	Rows      int             `json:"rows,omitempty"`
	Dir       string          `json:"dir,omitempty"`
	Checkout  *vocab.Checkout `json:"checkout,omitempty"`
	From      int64           `json:"from,omitempty"` // where the round began
	Began     time.Time       `json:"began,omitzero"` // and when; notes with the same are about the same round
	Problems  *Problems       `json:"problems,omitempty"`
	Host      string          `json:"host,omitempty"`
	Everybody bool            `json:"everybody,omitempty"` // lent to everybody at the host
	Grants    []Grant         `json:"grants,omitempty"`
	Denied    []string        `json:"denied,omitempty"`
	Guests    bool            `json:"guests,omitempty"` // lent to guests only
}

// Grant is a name at a host that may see text from an offset on.
type Grant struct {
	To   string `json:"to"`
	From int64  `json:"from"`
}

// state returns what the newest note of several replaces, "" for notes that stay.
func (n *Note) state() string {
	switch n.Kind {
	case NoteLent, NoteUnlent:
		return "lent " + n.Host
	case NoteSize, NoteDir, NoteCheckout, NoteForgot:
		return string(n.Kind)
	}
	return ""
}
