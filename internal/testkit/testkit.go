// Package testkit helps the tests of several packages. Only tests import it.
//
//   - Patience and Eventually wait for real processes and sockets; Rounds makes tests
//     longer in a soak, Load smaller with the race detector.
//   - Home, Leaks and StartTree give a test a separate home, and check that it leaves
//     nothing behind.
//   - Listen and FreePort use ports that the system assigns to nobody else while nobody
//     listens there.
//   - Child is a pty without a process, Flood an output whose bytes are all known, Output
//     keeps a program's output.
//   - Proxy breaks network connections as its Faults say, NATSProxy those to NATS.
//     StartNATS and StartVSCodeHost start real servers. Pipes and Connect make
//     connections.
//   - HostileAnswers and LargeObject are the largest messages of a hostile host.
//   - The packages must and check below this one: must ends a test at an unexpected error,
//     check reports and goes on.
//   - Unix and NotOnWine skip tests of missing features, and say why. DocCommands are the
//     commands that the pages show.
//
// A test that starts something begins like this:
//
//	func TestX(t *testing.T) {
//	testkit.Leaks(t) // first, so that it looks last
//	home := testkit.Home(t)
//	…
//	testkit.Eventually(t, testkit.Patience, "the terminal is listed", func() bool { … })
//	}
package testkit

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// The pauses between two checks of a condition: each is twice the one before, from
// firstLook up to lastLook.
const (
	firstLook = 200 * time.Microsecond
	lastLook  = 20 * time.Millisecond
)

// Patience is how long a test waits for an expected event before it gives up. Only a
// failing test waits that long. A machine that runs many tests at once may stand still
// for half a minute, so a shorter bound proves nothing about the program.
const Patience = 2 * time.Minute

// Eventually calls cond until it returns true. If that takes longer than d, the test
// fails with a message that contains what. It is for real processes and sockets; within
// one program, fake the time with testing/synctest.
func Eventually(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	if !within(d, cond) {
		t.Fatalf("after %v still not: %s", d, what)
	}
}

// within reports whether cond became true within d. It checks at least once, and once
// more after d, so that a machine that stood still does not fail a test.
func within(d time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(d)
	for pause := firstLook; !cond(); pause = min(2*pause, lastLook) {
		if time.Now().After(deadline) {
			return cond()
		}
		<-time.After(pause)
	}
	return true
}

// Home makes an empty directory, sets TETHER_HOME to it for this test, and removes it
// afterwards. Its path is short, unlike that of t.TempDir: the path of a unix socket
// below it must fit into 104 bytes. Because it sets a variable of the process, the test
// cannot be parallel.
func Home(t testing.TB) string {
	t.Helper()
	dir := must.Get(MakeHome())(t)
	t.Cleanup(func() {
		if err := RemoveHome(dir); err != nil {
			t.Errorf("remove the test's home: %v", err)
		}
	})
	t.Setenv("TETHER_HOME", dir)
	return dir
}

// RemoveHome removes the directory of MakeHome. It tries again for up to Patience,
// because Windows removes no file that an ending process still has open.
func RemoveHome(dir string) (err error) {
	within(Patience, func() bool { err = os.RemoveAll(dir); return err == nil })
	return err
}

// MakeHome makes an empty directory as Home does. The caller removes it with RemoveHome.
func MakeHome() (string, error) {
	if onWine { // there, new directories do not inherit that a temporary directory is closed to others
		dir := filepath.Join(os.TempDir(), "tt"+rand.Text()[:10])
		return dir, secret.Dir(dir)
	}
	return os.MkdirTemp(shortTemp(), "tt")
}

// shortTemp prefers /tmp to the temporary directory that macOS gives each user: the path
// of that one is about 50 bytes long.
func shortTemp() string {
	if info, err := os.Stat("/tmp"); err == nil && info.IsDir() && filepath.IsAbs("/tmp") {
		return "/tmp"
	}
	return os.TempDir()
}

// Abs makes a path that is absolute on Unix, such as "/" or "/src", absolute on this
// system: on Windows it adds the drive of the working directory. The path need not exist.
func Abs(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err) // the working directory is gone
	}
	return abs
}

// Bearer is a token that an HTTP client sends with each request; "" sends none.
type Bearer string

// RoundTrip implements [http.RoundTripper] with [http.DefaultTransport]. It does not
// change the request.
func (b Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// programsVar names a directory with the programs, which scripts/test.sh builds once for
// all packages.
const programsVar = "TETHER_TEST_PROGRAMS"

// Build puts tether and tether-host into dir, built as make build does, without the race
// detector. It compiles for seconds; in make test it copies built programs.
func Build(dir string) error {
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "tether/cmd/...")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if from := os.Getenv(programsVar); from != "" {
		// Another process copies: a program cannot be run while it is open for writing,
		// and a child that this process starts meanwhile would inherit the open file.
		c = exec.Command("cp", filepath.Join(from, "tether"), filepath.Join(from, "tether-host"), dir)
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}
