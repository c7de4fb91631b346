package keyring_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/keyring"
)

// realVar is set in the process below dbus-run-session.
const realVar = "KEYRING_TEST_REAL"

// GNOME's keyring, on a session bus of its own, keeps secrets encrypted. While it is
// locked or stopped, calls end in time.
func TestRealKeyring(t *testing.T) {
	if os.Getenv(realVar) != "" {
		realKeyring(t)
		return
	}
	for _, tool := range []string{"dbus-run-session", "dbus-send", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: scripts/test-tools.sh installs it", tool)
		}
	}
	dir := t.TempDir()
	c := exec.Command("dbus-run-session", "--", os.Args[0], "-test.run=^TestRealKeyring$", "-test.v")
	c.Env = []string{realVar + "=1", "HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}
	out, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestRealKeyring")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func realKeyring(t *testing.T) {
	daemon := exec.Command("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	daemon.Stdin = strings.NewReader("password of the keyring") // it makes a keyring with this password
	must.Do(t, daemon.Start())
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	testkit.Eventually(t, testkit.Patience, "it serves", func() bool { // before that the bus would start another one
		owned, err := exec.Command("dbus-send", "--session", "--dest=org.freedesktop.DBus", "--print-reply=literal", "/org/freedesktop/DBus",
			"org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets").Output()
		return err == nil && bytes.Contains(owned, []byte("true"))
	})
	k := keyring.System()
	testkit.Eventually(t, testkit.Patience, "the keyring can be used", func() bool { return k.Probe() == nil })

	canary := rand.Text()
	eventually(t, "it keeps a secret", func() error { return k.Set("a", canary) })
	eventually(t, "another process's keyring has it", func() error {
		got, err := keyring.System().Get("a")
		if err == nil && got != canary {
			t.Fatalf("it has %q, want %q", got, canary)
		}
		return err
	})
	if _, err := k.Get("b"); !errors.Is(err, keyring.ErrNotFound) && !errors.Is(err, keyring.ErrSilent) {
		t.Errorf("what is not there: %v", err)
	}
	lookFor(t, os.Getenv("XDG_DATA_HOME"), canary)

	pause(t, daemon.Process, syscall.SIGSTOP)
	if _, err := k.Get("a"); !errors.Is(err, keyring.ErrSilent) {
		t.Errorf("stopped: %v, want ErrSilent", err)
	}
	pause(t, daemon.Process, syscall.SIGCONT)
	eventually(t, "it has gone on", func() error { _, err := k.Get("a"); return err })

	lock := exec.Command("dbus-send", "--session", "--dest=org.freedesktop.secrets", "--print-reply", "/org/freedesktop/secrets",
		"org.freedesktop.Secret.Service.Lock", "array:objpath:/org/freedesktop/secrets/collection/login")
	if out, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := k.Get("a"); err == nil { // nobody is here to type the password
		t.Errorf("locked it gave %q", got)
	}
	if err := k.Probe(); err == nil {
		t.Error("locked it took something")
	}
}

// eventually waits until a call succeeds, which on a busy machine may take longer than
// the keyring may.
func eventually(t *testing.T, what string, call func() error) {
	t.Helper()
	testkit.Eventually(t, testkit.Patience, what, func() bool {
		err := call()
		if err != nil && !errors.Is(err, keyring.ErrSilent) {
			t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

func pause(t *testing.T, p *os.Process, s os.Signal) {
	t.Helper()
	must.Do(t, p.Signal(s))
}

// lookFor fails the test if a file contains the text, or if there is no file.
func lookFor(t *testing.T, dir, text string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			err = fmt.Errorf("%s holds the secret in the clear", path)
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Errorf("%d files, %v", seen, err)
	}
}
