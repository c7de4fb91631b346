package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"tether/platform/secret"
)

// Problem is one sign that a log was changed.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0 if the problem is about the whole file
	Text string `json:"text"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Report is the result of Verify.
type Report struct {
	Records  int64     `json:"records"` // intact ones
	First    int64     `json:"first"`
	Last     Head      `json:"last"`
	Problems []Problem `json:"problems"`
}

// Summary returns a text for people that says whether the log is intact. For an intact
// log its second line is the newest hash.
func (r Report) Summary() string {
	switch {
	case len(r.Problems) > 0:
		return fmt.Sprintf("the log was changed or damaged; %d records are intact", r.Records)
	case r.Records == 0:
		return "the log is empty"
	}
	return fmt.Sprintf("intact: %d records, %d to %d\n%s", r.Records, r.First, r.Last.N, r.Last.Hash)
}

// maxProblems is how many problems are reported. After a change, all lines that follow
// may be wrong.
const maxProblems = 20

// Verify reads the log at path with its older files. live is the head known to the daemon
// that writes it, or nil: with it, Verify also finds lines cut off together with the file
// next to the log. The error is about reading.
func Verify(path string, live *Head) (Report, error) {
	v := verifier{report: Report{Problems: []Problem{}}, seen: map[int64]string{}}
	head, headErr := readHead(path)
	if headErr != nil {
		v.problem(path+".head", 0, "%v", headErr)
	}
	v.want = [2]Head{head, deref(live)}
	for _, file := range files(path) {
		if err := v.file(file); err != nil {
			return v.report, err
		}
	}
	v.finish(path)
	return v.report, nil
}

func deref(h *Head) Head {
	if h == nil {
		return Head{}
	}
	return *h
}

// files returns the files of a log, oldest first.
func files(path string) []string {
	var all []string
	for n := maxKeep; n >= 0; n-- {
		if _, err := os.Lstat(nth(path, n)); err == nil {
			all = append(all, nth(path, n))
		}
	}
	return all
}

// maxKeep is the highest number for which an older file is looked for.
const maxKeep = 100

// verifier follows one chain.
type verifier struct {
	report Report
	begun  bool
	head   Head
	broken int64 // lines since head that are no records
	oldest int64 // the oldest line after the last rotation, 0 without one
	first  Problem
	want   [2]Head          // ends known from elsewhere
	seen   map[int64]string // by number, hashes of the lines that want names
}

func (v *verifier) problem(file string, line int, format string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, Problem{file, line, fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) file(name string) error {
	line := 0
	for text, err := range lines(name) {
		if err != nil {
			return err
		}
		line++
		v.line(name, line, text)
	}
	return nil
}

func (v *verifier) line(file string, line int, text []byte) {
	if !bytes.HasSuffix(text, []byte("\n")) {
		v.problem(file, line, "the record is cut off")
		return
	}
	r, err := Parse(text)
	if err != nil {
		v.problem(file, line, "%v", err)
		v.broken++
		return
	}
	if v.begun && v.broken > 0 && r.N == v.head.N+v.broken+1 {
		v.head = Head{r.N - 1, r.Prev} // the lines between are there, though not as they were
	}
	v.broken = 0
	if !v.begun {
		v.begun, v.report.First, v.first = true, r.N, Problem{File: file, Line: line}
		v.head = Head{r.N - 1, r.Prev}
		if r.N == 1 {
			v.head.Hash = origin
		}
	}
	if err := r.follows(v.head); err != nil {
		v.problem(file, line, "%v", err)
	} else {
		v.report.Records++
	}
	if r.N >= v.head.N {
		v.head = Head{r.N, r.Hash}
	}
	for _, w := range v.want {
		if r.N == w.N {
			v.seen[r.N] = r.Hash
		}
	}
	var n note
	if json.Unmarshal(r.Fields, &n) == nil && n.Event == "rotated" {
		v.oldest = n.Oldest
	}
}

// finish compares both ends with the known ones.
func (v *verifier) finish(path string) {
	v.report.Last = v.head
	if oldest := max(v.oldest, 1); v.begun && v.report.First > oldest {
		v.problem(v.first.File, v.first.Line, "records %d to %d are missing before this one", oldest, v.report.First-1)
	}
	for i, name := range []string{"the file beside it", "the running daemon"} {
		w := v.want[i]
		hash, ok := v.seen[w.N]
		switch {
		case w.N == 0, ok && hash == w.Hash:
		case w.N > v.head.N:
			v.problem(path, 0, "records %d to %d are missing at the end: %s has them", v.head.N+1, w.N, name)
		default:
			v.problem(path, 0, "record %d is not the one that %s has", w.N, name)
		}
	}
}

// lines yields the lines of a file with their newlines. A line beyond maxRecord comes
// without its end.
func lines(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := secret.OpenRead(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, maxRecord)
		for {
			line, err := r.ReadSlice('\n')
			if len(line) > 0 && !yield(line, nil) {
				return
			}
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				if !skipLine(r) {
					return
				}
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			}
		}
	}
}

// skipLine reads up to the end of the line and reports whether there is one.
func skipLine(r *bufio.Reader) bool {
	for {
		_, err := r.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err == nil
		}
	}
}

// firstRecord returns the first intact line of a file.
func firstRecord(name string) (Record, bool) {
	for line, err := range lines(name) {
		if err != nil {
			return Record{}, false
		}
		if r, err := Parse(bytes.Clone(line)); err == nil {
			return r, true
		}
	}
	return Record{}, false
}

// Read yields all lines of the log with its older files, oldest first. A line that is not
// a record yields an error with the text of the problem, and reading continues.
func Read(path string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, file := range files(path) {
			n := 0
			for line, err := range lines(file) {
				n++
				var r Record
				if err == nil {
					r, err = Parse(bytes.Clone(line))
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					err = fmt.Errorf("%s:%d: %w", file, n, err)
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
}
