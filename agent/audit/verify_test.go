package audit_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"tether/agent/audit"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// change does something to the lines of a log with ten records.
type change struct {
	name string
	do   func(lines [][]byte) [][]byte
	want string // in the first problem
}

var changes = []change{
	{"edit", func(l [][]byte) [][]byte { l[2] = bytes.Replace(l[2], []byte("number"), []byte("NUMBER"), 1); return l }, ":3: the hash does not match"},
	{"edit of a hash", func(l [][]byte) [][]byte { l[2][len(l[2])-5] ^= 1; return l }, ":3: "},
	{"edit of a number", func(l [][]byte) [][]byte { l[2] = bytes.Replace(l[2], []byte(`"n":3`), []byte(`"n":4`), 1); return l }, ":3: the hash"},
	{"blank added", func(l [][]byte) [][]byte { l[4] = append([]byte(" "), l[4]...); return l }, ":5: "},
	{"line made anew", func(l [][]byte) [][]byte { l[4] = slices.Clone(l[3]); return l }, ":5: record 4 follows record 4"},
	{"first line removed", func(l [][]byte) [][]byte { return l[1:] }, ":1: records 1 to 1 are missing"},
	{"lines removed", func(l [][]byte) [][]byte { return slices.Delete(l, 4, 7) }, ":5: records 5 to 7 are missing"},
	{"exchanged", func(l [][]byte) [][]byte { l[4], l[5] = l[5], l[4]; return l }, ":5: records 5 to 5 are missing"},
	{"repeated", func(l [][]byte) [][]byte { return slices.Insert(l, 5, l[4]) }, ":6: record 5 follows record 5"},
	{"end removed", func(l [][]byte) [][]byte { return l[:8] }, "records 9 to 10 are missing at the end"},
	{"all removed", func([][]byte) [][]byte { return nil }, "records 1 to 10 are missing at the end"},
	{"cut off", func(l [][]byte) [][]byte { l[9] = l[9][:20]; return l }, ":10: the record is cut off"},
	{"foreign line", func(l [][]byte) [][]byte { return slices.Insert(l, 5, []byte("{\"n\":6}\n")) }, ":6: not an audit record"},
	{"empty line", func(l [][]byte) [][]byte { return slices.Insert(l, 5, []byte("\n")) }, ":6: not an audit record"},
	{"very long line", func(l [][]byte) [][]byte {
		return slices.Insert(l, 5, append(bytes.Repeat([]byte("x"), 1<<20), '\n'))
	}, ":6: the record is cut off"},
}

func TestVerifyFindsChanges(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, 10, audit.Options{})
			intact(t, path, 10)
			lines := readLines(t, path)
			writeLines(t, path, c.do(lines[:10])...)
			r := verified(t, path, nil)
			if len(r.Problems) == 0 || !strings.Contains(r.Problems[0].String(), c.want) {
				t.Errorf("problems %v, want first %q", r.Problems, c.want)
			}
		})
	}
}

// One edited line is one problem: later lines are unchanged.
func TestOneEditIsOneProblem(t *testing.T) {
	path := written(t, 10, audit.Options{})
	lines := readLines(t, path)
	lines[4] = bytes.Replace(lines[4], []byte("number"), []byte("NUMBER"), 1)
	writeLines(t, path, lines...)
	if r := verified(t, path, nil); len(r.Problems) != 1 || r.Records != 9 {
		t.Errorf("%+v, want one problem and nine records", r)
	}
}

// Every single byte counts: the property behind the table above.
func TestVerifyFindsAnyByte(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	path := written(t, 3, audit.Options{})
	whole := bytes.Join(readLines(t, path), nil)
	for i := range whole {
		changed := slices.Clone(whole)
		changed[i] ^= 0x20
		writeLines(t, path, changed)
		if r := verified(t, path, nil); len(r.Problems) == 0 {
			t.Fatalf("byte %d changed from %q to %q was not found", i, whole[i], changed[i])
		}
	}
}

// The chain alone does not know its end, and neither does a file that was taken back with
// it: the daemon does.
func TestLiveHeadFindsTheEnd(t *testing.T) {
	path := written(t, 10, audit.Options{})
	last := verified(t, path, nil).Last
	before := must.Get(os.ReadFile(path + ".head"))(t)
	lines := readLines(t, path)
	writeLines(t, path, lines[:8]...)
	eighth := must.Get(audit.Parse(lines[7]))(t)
	head := strings.Replace(string(before), "10 ", "08 ", 1)
	head = strings.Replace(head, last.Hash, eighth.Hash, 1)
	writeLines(t, path+".head", []byte(head))
	intact(t, path, 8)
	r := verified(t, path, &last)
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Text, "records 9 to 10 are missing at the end: the running daemon") {
		t.Errorf("problems %v", r.Problems)
	}
	forged := audit.Head{N: 8, Hash: last.Hash}
	if r := verified(t, path, &forged); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Text, "record 8 is not the one") {
		t.Errorf("problems %v", r.Problems)
	}
}

func TestHeadFile(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(path string) error
		want string // "" for none
	}{
		{"removed", func(p string) error { return os.Remove(p + ".head") }, ""},
		{"garbage", func(p string) error { return os.WriteFile(p+".head", []byte("x"), 0o600) }, "does not have its form"},
		{"behind, as after a crash", func(p string) error {
			l, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			r, err := audit.Parse(bytes.SplitAfter(l, []byte("\n"))[8])
			if err != nil {
				return err
			}
			return os.WriteFile(p+".head", []byte("00000000000000000009 "+r.Hash+"\n"), 0o600)
		}, ""},
		{"open to others", func(p string) error { return os.Chmod(p+".head", 0o644) }, "chmod 600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "chmod 600" {
				testkit.Unix(t, testkit.Modes)
			}
			path := written(t, 10, audit.Options{})
			must.Do(t, c.do(path))
			r := verified(t, path, nil)
			switch {
			case c.want == "" && len(r.Problems) > 0:
				t.Errorf("problems %v, want none", r.Problems)
			case c.want != "" && (len(r.Problems) == 0 || !strings.Contains(r.Problems[0].Text, c.want)):
				t.Errorf("problems %v, want %q", r.Problems, c.want)
			}
		})
	}
}

func TestVerifyNothing(t *testing.T) {
	if r := verified(t, t.TempDir()+"/none", nil); len(r.Problems) > 0 || r.Records != 0 {
		t.Errorf("%+v", r)
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	path := written(t, 200, audit.Options{})
	lines := readLines(t, path)
	for _, l := range lines {
		if len(l) > 0 {
			l[10] ^= 1
		}
	}
	writeLines(t, path, lines...)
	if r := verified(t, path, nil); len(r.Problems) != 20 {
		t.Errorf("%d problems, want 20", len(r.Problems))
	}
}
