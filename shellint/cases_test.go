package shellint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/shellint"
)

// caseDirs hold streams with expectations: a copy that is always there, and the newest
// one if it lies beside the tree.
var caseDirs = []string{"testdata/cases", "../../shared/cases/shellint"}

// text is a string of a case file: UTF-8 as a string, anything else as {"hex": …}.
type text string

func (x *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*x = text(s)
		return nil
	}
	var h struct{ Hex string }
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	raw, err := hex.DecodeString(h.Hex)
	*x = text(raw)
	return err
}

type wantMark struct {
	Off, End                int64
	CleanOff                int64 `json:"clean_off"`
	PS                      int32
	Verb, Term, Dropped     string
	Args                    []text
	Exit                    *int64
	Opts                    map[string]text
	Auth                    bool
	Key, Host               text
	Value, Cwd, Title, Text *text
	CommandLine             *text `json:"command_line"`
}

type wantCommand struct {
	CommandLine *text  `json:"command_line"`
	LineFrom    string `json:"line_from"`
	CleanStart  int64  `json:"clean_start"`
	CleanEnd    int64  `json:"clean_end"`
	Exit        *int64
	ClosedBy    string `json:"closed_by"`
	OutputLen   int64  `json:"output_len"`
	OutputSHA   string `json:"output_sha256"`
}

type stream struct {
	Name   string
	Nonce  string
	Reads  []int
	raw    []byte
	Expect struct {
		Trust       string
		Marks       []wantMark
		CleanLen    int    `json:"clean_len"`
		CleanSHA    string `json:"clean_sha256"`
		CleanAllLen int    `json:"clean_all_len"`
		CleanAllSHA string `json:"clean_all_sha256"`
		Commands    []wantCommand
	}
}

// streams loads every case once, by name; those beside the tree win.
func streams(t testing.TB) []*stream {
	t.Helper()
	seen := map[string]*stream{}
	var all []*stream
	for _, dir := range caseDirs {
		files := must.Get(filepath.Glob(filepath.Join(dir, "*.json")))(t)
		for _, file := range files {
			s := loadStream(t, file)
			if seen[s.Name] == nil {
				all = append(all, s)
			}
			seen[s.Name] = s
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d cases found", len(all))
	}
	for i, s := range all {
		all[i] = seen[s.Name]
	}
	return all
}

func loadStream(t testing.TB, file string) *stream {
	t.Helper()
	js, err := os.ReadFile(file)
	must.Do(t, err)
	s := new(stream)
	if err := json.Unmarshal(js, s); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if s.raw, err = os.ReadFile(strings.TrimSuffix(file, ".json") + ".bin"); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCasesWhole holds every stream, in one piece, to the expectations of its file.
func TestCasesWhole(t *testing.T) {
	for _, s := range streams(t) {
		t.Run(s.Name, func(t *testing.T) {
			got := scanPieces(t, s.raw, shellint.Options{Nonce: s.Nonce}, nil)
			clean := got.without(shellint.ClassMark)
			checkSum(t, "clean", clean, s.Expect.CleanLen, s.Expect.CleanSHA)
			checkSum(t, "clean_all", got.without(shellint.ClassMark, shellint.ClassReport), s.Expect.CleanAllLen, s.Expect.CleanAllSHA)
			check.Equal(t, "marks", wantMarks(s), gotMarks(s, got))
			check.Equal(t, "commands", s.Expect.Commands, commands(t, s, shellint.Options{Nonce: nonceFor(s)}, true), cmp.Comparer(sameText))
			announced := []wantCommand{}
			for _, c := range s.Expect.Commands {
				if c.CommandLine != nil && c.LineFrom != "late E" || c.OutputLen > 0 || c.ClosedBy == "D" || c.ClosedBy == "eof" {
					announced = append(announced, c)
				}
			}
			check.Equal(t, "lazily announced commands", announced, commands(t, s, shellint.Options{Nonce: nonceFor(s)}, false), cmp.Comparer(sameText))
		})
	}
}

// TestCasesSplit feeds every stream in its recorded reads, byte by byte and in random
// pieces: the result must equal that of the whole stream.
func TestCasesSplit(t *testing.T) {
	for _, s := range streams(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			o := shellint.Options{Nonce: s.Nonce}
			want := scanPieces(t, s.raw, o, nil)
			check := func(name string, cuts []int) {
				t.Helper()
				if got := scanPieces(t, s.raw, o, cuts); !got.same(want) {
					t.Fatalf("%s (-whole +pieces):\n%s", name, cmp.Diff(want.String(), got.String()))
				}
			}
			check("as read", s.Reads)
			check("byte by byte", bytePieces(len(s.raw)))
			rng := rand.New(rand.NewPCG(1, uint64(len(s.raw))))
			for range testkit.Load(20, 4) {
				check("random pieces", randomPieces(rng, len(s.raw)))
			}
		})
	}
}

// TestCasesCutInTwo cuts every stream under 20 KB in two: the result must equal that of
// the whole stream. Short streams are cut at every byte. A round of the longer ones scans
// cutBytes of each; all rounds together cut at every byte, too.
func TestCasesCutInTwo(t *testing.T) {
	const most = 20 << 10
	cutBytes := testkit.Load(1<<20, 64<<10)
	for round := range testkit.Rounds(t, 1, most*most/cutBytes+1) {
		for _, s := range streams(t) {
			n := len(s.raw)
			step := 1 + n*n/cutBytes
			if n >= most || round >= step {
				continue
			}
			o := shellint.Options{Nonce: s.Nonce}
			want := scanPieces(t, s.raw, o, nil)
			for at := round; at < n; at += step {
				if got := scanPieces(t, s.raw, o, []int{at, n - at}); !got.same(want) {
					t.Fatalf("%s, cut at %d (-whole +pieces):\n%s", s.Name, at, cmp.Diff(want.String(), got.String()))
				}
			}
		}
	}
}

// TestCasesWrongNonce checks that without the session's nonce nothing in a stream makes a
// command.
func TestCasesWrongNonce(t *testing.T) {
	for _, s := range streams(t) {
		if !strings.HasPrefix(s.Name, "own-") {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if got := commands(t, s, shellint.Options{Nonce: "another nonce"}, true); len(got) > 0 {
				t.Errorf("commands with a wrong nonce: %+v", got)
			}
			got := scanPieces(t, s.raw, shellint.Options{Nonce: "another nonce"}, nil)
			checkSum(t, "clean", got.without(shellint.ClassMark), s.Expect.CleanLen, s.Expect.CleanSHA)
		})
	}
}

func sameText(a, b *text) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func nonceFor(s *stream) string {
	if s.Expect.Trust == "auth" {
		return s.Nonce
	}
	return ""
}

func checkSum(t *testing.T, what string, got []byte, n int, sum string) {
	t.Helper()
	if h := sha256.Sum256(got); len(got) != n || hex.EncodeToString(h[:]) != sum {
		t.Errorf("%s stream: %d bytes, want %d: %.2000q", what, len(got), n, got)
	}
}

// wantMarks are the expected marks that a Scanner reports. Cancelled sequences are not
// marks.
func wantMarks(s *stream) []wantMark {
	var marks []wantMark
	for _, m := range s.Expect.Marks {
		if m.Dropped == "" {
			m.Opts = nil // held to Mark.Opt in gotMarks
			marks = append(marks, m)
		}
	}
	return marks
}

var termNames = map[shellint.Terminator]string{
	shellint.TermBEL: "BEL", shellint.TermST: "ST", shellint.TermC1ST: "C1ST", shellint.TermESC: "ESC", shellint.TermEOF: "eof",
}

// gotMarks puts marks in the form of the expectations. Marks of kinds that these do not
// list are left out.
func gotMarks(s *stream, got *result) []wantMark {
	var marks []wantMark
	for _, m := range got.marks {
		if m.Kind == shellint.KindQuery || m.Kind == shellint.KindClipboard {
			continue
		}
		w := wantMark{
			Off: m.Off, End: m.End, CleanOff: got.cleanOff(m.Off), PS: m.PS, Verb: m.Verb(), Term: termNames[m.Term],
			Key: text(m.Key), Host: text(m.Host),
		}
		str := text(m.Text)
		switch m.Kind {
		case shellint.KindTitle:
			w.Title = &str
		case shellint.KindLine:
			w.CommandLine = &str
		case shellint.KindOutputStart:
			if m.HasText {
				w.CommandLine = &str
			}
		case shellint.KindCommandEnd:
			if m.Exit.Known {
				w.Exit = &m.Exit.Code
			}
		case shellint.KindCwd:
			w.Cwd = &str
		case shellint.KindProperty:
			if m.HasText {
				w.Value = &str
			}
		}
		payload := text(m.Payload())
		switch m.PS {
		case 133, 633:
			w.Args = args(&m)
			w.Auth = s.Nonce != "" && m.Trusted && m.PS == 633
			if w.Cwd != nil {
				w.Value, w.Cwd = w.Cwd, nil
			}
		case 9:
			if w.Cwd == nil {
				w.Args = args(&m)
			}
		case 1337, 3008:
			w.Text = &payload
		}
		marks = append(marks, w)
	}
	return marks
}

func args(m *shellint.Mark) []text {
	list := []text{}
	for _, a := range m.Args() {
		list = append(list, text(a))
	}
	return list
}

// commands runs a Tracker over a stream and returns its events in the form of the
// expectations.
func commands(t *testing.T, s *stream, o shellint.Options, eager bool) []wantCommand {
	t.Helper()
	whole := scanPieces(t, s.raw, o, nil)
	var got []wantCommand
	for _, cuts := range [][]int{nil, s.Reads, bytePieces(len(s.raw))} {
		cmds := commandsOf(whole, trackPieces(s.raw, o, eager, cuts))
		if got == nil {
			got = cmds
		}
		if diff := cmp.Diff(got, cmds, cmp.Comparer(sameText)); diff != "" {
			t.Fatalf("commands in pieces (-whole +pieces):\n%s", diff)
		}
	}
	return got
}

var sourceNames = map[shellint.LineSource]string{
	shellint.SourceLine: "E", shellint.SourceOption: "C", shellint.SourceLate: "late E",
}

var reasonNames = map[shellint.CloseReason]string{
	shellint.ClosedByEnd: "D", shellint.ClosedByPrompt: "A", shellint.ClosedByOutput: "C", shellint.ClosedByEOF: "eof",
}

func commandsOf(whole *result, events []shellint.CommandEvent) []wantCommand {
	byID := map[int64]int{}
	got := []wantCommand{}
	clean := whole.without(shellint.ClassMark)
	for _, e := range events {
		if e.Kind == shellint.CommandOpened {
			byID[e.ID] = len(got)
			got = append(got, wantCommand{CleanStart: whole.cleanOff(e.Off)})
		}
		c := &got[byID[e.ID]]
		if line := text(e.Line); e.Source != shellint.SourceNone {
			c.CommandLine, c.LineFrom = &line, sourceNames[e.Source]
		}
		if e.Kind == shellint.CommandClosed {
			c.CleanEnd = whole.cleanOff(e.Off)
			c.ClosedBy = reasonNames[e.Reason]
			if code := e.Exit.Code; e.Exit.Known {
				c.Exit = &code
			}
			out := clean[c.CleanStart:c.CleanEnd]
			sum := sha256.Sum256(out)
			c.OutputLen, c.OutputSHA = int64(len(out)), hex.EncodeToString(sum[:])
		}
	}
	return got
}

func trackPieces(raw []byte, o shellint.Options, eager bool, cuts []int) []shellint.CommandEvent {
	s := shellint.NewScanner(o)
	tr := &shellint.Tracker{Eager: eager}
	var r shellint.Result
	var events []shellint.CommandEvent
	for p := range pieces(raw, cuts) {
		s.Scan(bytes.Clone(p), &r)
		events = append(events, tr.Feed(&r)...)
	}
	s.Close(&r)
	events = append(events, tr.Feed(&r)...)
	return append(events, tr.Close(s.Offset(), shellint.Exit{})...)
}
