package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
)

func TestTailPrintsLastLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for text, want := range map[string]string{
		"":                      "",
		"a\n":                   "a\n",
		"a\nb\nc":               "a\nb\nc",
		"a\nb\nc\n":             "a\nb\nc\n",
		"a\nb\nc\nd\n":          "b\nc\nd\n",
		"a\nb\nc\nd":            "b\nc\nd",
		"a\nb\nc\nd\ne\nf\ng\n": "e\nf\ng\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := tail(t.Context(), &b, name, 3, false); err != nil || b.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, b.String(), err, want)
		}
	}
	if err := tail(t.Context(), &bytes.Buffer{}, name+".none", 3, false); err != nil {
		t.Errorf("no log yet: %v", err)
	}
}

// A log that is followed may not be there yet, and begins anew when it is full.
func TestTailFollows(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	ctx, stop := context.WithCancel(t.Context())
	out, ended := &testkit.Output{}, make(chan error, 1)
	go func() { ended <- tail(ctx, out, name, 5, true) }()
	want := ""
	for i := range 3 {
		line := fmt.Sprintln("line", i)
		want += line
		if i == 2 {
			if err := os.Rename(name, name+".1"); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(line)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, "the new line", func() bool { return out.String() == want })
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The program is installed under the name that stays when its version changes.
func TestStableProgram(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "tether")
	if err := os.Symlink(self, link); err != nil {
		t.Skip("no links here:", err)
	}
	t.Setenv("PATH", dir)
	if got, err := stableProgram(); err != nil || got != link {
		t.Errorf("got %s, %v, want %s", got, err, link)
	}
	if err := errors.Join(os.Remove(link), os.WriteFile(link, []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if got, err := stableProgram(); err != nil || got != self || strings.HasPrefix(got, dir) {
		t.Errorf("another program was taken: %s, %v", got, err)
	}
}
