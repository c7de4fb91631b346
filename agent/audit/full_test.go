//go:build linux || darwin

package audit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tether/agent/audit"
	"tether/internal/testkit/must"
)

// fullVar makes the test's program write a log on a disk that is full at some point:
// files may have so many bytes.
const fullVar = "TETHER_TEST_FULL_DISK"

func TestMain(m *testing.M) {
	if path := os.Getenv(fullVar); path != "" {
		if err := writeUntilFull(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeUntilFull writes until the limit, beyond it, and after it was lifted.
func writeUntilFull(path string) error {
	const limit = 10_000 // bytes: in the middle of a record
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		return err
	}
	l := audit.New(audit.Options{Path: path})
	failed := int64(0)
	for range 100 {
		if err := l.Append(entry{"test", strings.Repeat("x", 100)}); err != nil {
			if !errors.Is(err, syscall.EFBIG) {
				return fmt.Errorf("it fails otherwise: %w", err)
			}
			failed++
		}
	}
	lost, err := l.Trouble()
	if failed == 0 || lost != failed || err == nil {
		return fmt.Errorf("%d of 100 failed; trouble says %d, %v", failed, lost, err)
	}
	if r, err := audit.Verify(path, nil); err != nil || len(r.Problems) > 0 {
		return fmt.Errorf("while it is full: %+v, %w", r, err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := l.Append(entry{"test", "after"}); err != nil {
		return err
	}
	if lost, err := l.Trouble(); lost != 0 || err != nil {
		return fmt.Errorf("afterwards trouble says %d, %w", lost, err)
	}
	return l.Close()
}

// A disk that fills up in the middle of a line leaves no half of it, and the chain
// continues when there is room again, with the number of missing lines.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fullVar+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := verified(t, path, nil)
	if len(r.Problems) > 0 {
		t.Errorf("problems %v", r.Problems)
	}
	lines := readLines(t, path)
	last, note := string(lines[len(lines)-2]), string(lines[len(lines)-3])
	if !strings.Contains(last, `"text":"after"`) || !strings.Contains(note, `"event":"lost","count":`) {
		t.Errorf("the end is\n%s%s", note, last)
	}
}
