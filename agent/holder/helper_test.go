package holder_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
)

// programs are other jobs of the test binary, by its first argument.
var programs = map[string]func(args []string) int{
	"holder":        holder.Main,
	proc.LimitsVerb: proc.BecomeLimited,
	"count":         count,
	"daemon":        daemon,
	"wait":          wait,
	"knock":         knock,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		os.Exit(programs[os.Args[1]](os.Args[2:]))
	}
	os.Exit(m.Run())
}

// options are for a directory of this test alone, which must leave nothing behind.
func options(t testing.TB) holder.Options {
	testkit.Leaks(t) // first, so that it looks last
	reports := filepath.Join(t.TempDir(), "race")
	t.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+reports)
	t.Cleanup(func() { // runs after the cleanups of spawn
		found := must.Get(filepath.Glob(reports + ".*"))(t)
		for _, name := range found {
			text, err := os.ReadFile(name)
			t.Errorf("a race in a holder: %s, %v", text, err)
		}
	})
	name := fmt.Sprintf("tether-test-%d", os.Getpid()) // unlike the name in other packages' tests at the same time
	return holder.Options{Dir: filepath.Join(testkit.Home(t), "h"), Path: self(t), Argv: []string{name, "holder"}, Key: holder.Key()}
}

func self(t testing.TB) string {
	t.Helper()
	return must.Get(os.Executable())(t)
}

func dirFS(dir string) fs.FS { return os.DirFS(dir) }

// waiting is a command that reports when it is ready and prints typed text line by line.
func waiting(t testing.TB) pty.Command {
	return pty.Command{Path: self(t), Args: []string{"wait", "wait"}}
}

func wait(args []string) int {
	if len(args) == 2 && args[0] == "checksum" {
		testkit.AwaitFile(args[1])
		data, err := io.ReadAll(os.Stdin)
		fmt.Println(len(data), crc32.ChecksumIEEE(data))
		if err != nil {
			fmt.Println(err)
		}
		return 0
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println("got", in.Text())
	}
	return 0
}

// knock connects to a holder as a daemon would, with the lock if one is named, and prints
// the result.
func knock(args []string) int {
	o := holder.Options{Dir: args[0], Key: holder.Key()}
	if args[1] == "wrong" {
		o.Key[0]++
	}
	if len(args) > 3 {
		lock, err := ipc.Lock(args[3])
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer lock.Close()
	}
	c, err := holder.Dial(context.Background(), o, args[2])
	if err != nil {
		fmt.Println("out:", err)
		return 0
	}
	defer c.Close()
	fmt.Printf("in: %q.\n", c.Meta())
	return 0
}

// sh is a command for the shell.
func sh(script string) pty.Command {
	return pty.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"}}
}

func spawn(t testing.TB, o holder.Options, s holder.Spec) *holder.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	c := must.Get(holder.Spawn(ctx, o, s))(t)
	t.Cleanup(func() { discard(t, o, s.ID) })
	return c
}

// discard ends the holder that a test has left, also after a failure.
func discard(t testing.TB, o holder.Options, id string) {
	c, err := holder.Dial(context.Background(), o, id)
	if errors.Is(err, holder.ErrGone) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	_ = c.Kill(ctx, 0)
	c.Wait()
	check.OK(t, c.Forget(ctx))
}

func dial(t testing.TB, o holder.Options, id string) *holder.Client {
	t.Helper()
	c := must.Get(holder.Dial(t.Context(), o, id))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// all reads to the end of output.
func all(t testing.TB, c *holder.Client) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := io.Copy(&out, c); err != nil {
		t.Errorf("after %d bytes: %v", out.Len(), err)
	}
	return out.String()
}

// readUntil reads until the output contains want.
func readUntil(t testing.TB, c *holder.Client, want string) string {
	t.Helper()
	var got []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(got, []byte(want)) {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			t.Fatalf("%q, then %v; want %q", got, err, want)
		}
	}
	return string(got)
}

func stream(t testing.TB, c *holder.Client, off int64) {
	t.Helper()
	must.Do(t, c.StreamFrom(off))
}

func forget(t testing.TB, c *holder.Client) {
	t.Helper()
	must.Do(t, c.Forget(t.Context()))
}

// count prints lines of eight digits and a line end, which the terminal makes ten bytes,
// so that any piece of its output can be checked by its offset.
func count(args []string) int {
	os.Stderr.Close() // a binary that measures coverage complains there at its end
	limit, _ := strconv.Atoi(args[0])
	buf := make([]byte, 0, 64<<10)
	for n := 0; n < limit; {
		for buf = buf[:0]; n < limit && len(buf) < 60<<10; n++ {
			buf = append(counter(buf, n), '\n')
		}
		if _, err := os.Stdout.Write(buf); err != nil {
			return 1
		}
	}
	return 0
}

func counter(dst []byte, n int) []byte {
	for unit := 10_000_000; unit > 0; unit /= 10 {
		dst = append(dst, byte('0'+n/unit%10))
	}
	return dst
}

// checkCount returns the first offset at which p differs from the output of count at off,
// or -1.
func checkCount(p []byte, off int64) int64 {
	var line []byte
	for i := range p {
		at := off + int64(i)
		if line == nil || at%10 == 0 {
			line = append(counter(line[:0], int(at/10)), '\r', '\n')
		}
		if p[i] != line[at%10] {
			return at
		}
	}
	return -1
}

func countCommand(t testing.TB, lines int) pty.Command {
	path := self(t)
	return pty.Command{Path: path, Args: []string{path, "count", strconv.Itoa(lines)}}
}

// daemon follows a holder into a file, whose length is where it goes on. It is there to
// be killed.
func daemon(args []string) int {
	dir, id, name := args[0], args[1], args[2]
	fmt.Println(takeOutput(holder.Options{Dir: dir, Key: holder.Key()}, id, name))
	return 0
}

func takeOutput(o holder.Options, id, name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c, err := holder.Dial(context.Background(), o, id)
	if err != nil {
		return err
	}
	if err := c.StreamFrom(info.Size()); err != nil {
		return err
	}
	_, err = io.Copy(f, c)
	return err
}

func daemonCommand(t testing.TB, o holder.Options, file string) *exec.Cmd {
	return exec.Command(self(t), "daemon", o.Dir, "x", file)
}

// killedDaemon starts a daemon that follows x into a file, and kills it after a time and
// when the file has at least that size.
func killedDaemon(t *testing.T, o holder.Options, file string, atLeast int64, after time.Duration) {
	t.Helper()
	cmd := daemonCommand(t, o, file)
	var said testkit.Output
	cmd.Stdout = &said
	must.Do(t, cmd.Start())
	<-time.After(after)
	testkit.Eventually(t, testkit.Patience, "the daemon records output", func() bool { return size(t, file) >= atLeast || said.String() != "" })
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if said.String() != "" {
		t.Fatalf("the daemon that should be killed said %s", said.String())
	}
}

// lastDaemon follows x to its end.
func lastDaemon(t *testing.T, o holder.Options, file string) {
	t.Helper()
	if out, err := daemonCommand(t, o, file).CombinedOutput(); err != nil || string(out) != "<nil>\n" {
		t.Fatalf("the last daemon: %v %s", err, out)
	}
}

// pidIn is the number of a process that wrote it into a file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
}
