package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tether/agent"
	"tether/agent/local"
	"tether/agent/localclient"
	"tether/ahp"
	"tether/host"
	"tether/host/access"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/sandbox"
	"tether/platform/secret"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Verb && filepath.Base(os.Args[0]) != "tether" { // not a script's
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == proc.LimitsVerb { // a daemon in this process
		os.Exit(proc.BecomeLimited(os.Args[2:]))
	}
	os.Setenv(raceVar, quickRace)
	if _, ok := os.LookupEnv(lendAsRootVar); !ok { // a script may have emptied it
		os.Setenv(lendAsRootVar, "true")
	}
	setContainer()
	os.Exit(testkit.Main(scripts{alone(m)}))
}

// scripts is the tests, and by its name one of the programs that they start. That makes a
// directory first, which a program that is killed leaves behind: testkit.FloodCommand
// must not get there.
type scripts struct{ m interface{ Run() int } }

func (s scripts) Run() int {
	testscript.Main(s.m, map[string]func(){
		"tether":     func() { setAway(); setContainer(); addSettings(); main() },
		"acppeer":    acpPeer,
		"argv":       argv,
		"does":       does,
		"flood":      flood,
		"holdlock":   holdLock,
		"ignoreterm": ignoreTerm,
		"devserver":  devServer,
		"atprompt":   prompted,
	})
	return 0 // not reached
}

// awayVar is how long a test's command waits for the next daemon, and for that to adopt
// terminals.
const awayVar = "TEST_AWAY_PATIENCE"

func setAway() {
	if d, err := time.ParseDuration(os.Getenv(awayVar)); err == nil {
		localclient.AwayTimeout, localclient.MissingTimeout = d, d
	}
}

// settingsVar has a line KEY=VALUE for each key that configure gives the daemons of a
// test.
const settingsVar = "TEST_SETTINGS"

func configure(t *testing.T, key, value string) {
	t.Helper()
	t.Setenv(settingsVar, os.Getenv(settingsVar)+key+"="+value+"\n")
}

func addSettings() {
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		for setting := range strings.Lines(os.Getenv(settingsVar)) {
			os.Args = append(os.Args, "--set", strings.TrimSpace(setting))
		}
	}
}

// containerVar names the container in which a command of a test is. Tests are the same in
// a container and outside.
const containerVar = "TEST_CONTAINER"

func setContainer() { container = func() string { return os.Getenv(containerVar) } }

// does takes a step for each argument, on every system: print:TEXT a line, after:TIME,
// file:PATH until there is one, read a line, exit:STATUS.
func does() {
	in := bufio.NewReader(os.Stdin)
	for _, step := range os.Args[1:] {
		name, what, _ := strings.Cut(step, ":")
		switch name {
		case "print":
			fmt.Println(what)
		case "after":
			d, err := time.ParseDuration(what)
			if err != nil {
				os.Exit(2)
			}
			<-time.After(d)
		case "file":
			for _, err := os.Stat(what); err != nil; _, err = os.Stat(what) {
				<-time.After(10 * time.Millisecond)
			}
		case "read":
			if _, err := in.ReadString('\n'); err != nil {
				os.Exit(3)
			}
		case "exit":
			status, _ := strconv.Atoi(what)
			os.Exit(status)
		}
	}
}

// A program with the race detector waits a second at its end, in case a race comes late.
// With hundreds of commands that is too long.
const (
	raceVar   = "GORACE"
	quickRace = "atexit_sleep_ms=20"
)

// lendAsRootVar makes tests the same for root and for everybody else.
const lendAsRootVar = "TETHER_LEND_AS_ROOT"

// patience is how long a script waits for an expected event.
const patience = testkit.Patience

func TestScripts(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	runScripts(t, "testdata/script", "/bin/sh")
}

// runScripts runs the scripts in the folder, for a person with that shell.
func runScripts(t *testing.T, folder, shell string, env ...string) {
	all := &testHosts{all: map[string]*testHost{}}
	t.Setenv("GOTMPDIR", t.TempDir()) // testscript leaves a directory there when -run chooses among the scripts
	testscript.Run(t, testscript.Params{
		Dir: folder, RequireExplicitExec: true, RequireUniqueNames: true,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "systemd":
				_, err := os.Stat("/run/systemd/system")
				return err == nil, nil
			case "wall":
				self, err := os.Executable()
				return err == nil && sandbox.Works(sandbox.Wall, self) == nil, err
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(script *testscript.Env) error {
			home, err := testkit.MakeHome()
			if err != nil {
				return err
			}
			script.Defer(func() { endDaemon(t, home) })
			token, err := personToken(home)
			if err != nil {
				return err
			}
			script.Vars = append(script.Vars, dirs.HomeVar+"="+home, tokenVar+"="+token, allowRootVar+"=1", lendAsRootVar+"=true", "NO_COLOR=", "TERM=xterm", "SHELL="+shell,
				raceVar+"="+quickRace)
			script.Vars = append(script.Vars, env...)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"starthost": all.start,
			"stophost":  all.stop,
			"await":     await,
			"capture":   capture,
			"status":    exitedWith,
			"unwritten": unwritten,
			"nosecret":  noSecret,
			"gone":      gone,
		},
	})
}

// personToken makes a token of the person's in a home, as they do at a terminal, and
// returns the file with it: commands of tests have no terminal.
func personToken(home string) (file string, err error) {
	d := dirsOf(home)
	if err := secret.Dir(d.State); err != nil {
		return "", err
	}
	tokens, err := local.OpenTokens(d.State)
	if err != nil {
		return "", err
	}
	token, err := tokens.CreatePerson("tests")
	if err != nil {
		return "", err
	}
	return tokenOf(home), secret.WriteFile(tokenOf(home), []byte(token+"\n"))
}

func tokenOf(home string) string { return filepath.Join(dirsOf(home).State, "token-of-tests") }

// endDaemon ends the daemon that a test has started, and removes its home.
func endDaemon(t testing.TB, home string) {
	t.Helper()
	d := dirsOf(home)
	client := localclient.New(agent.SocketPath(d))
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch err := client.Shutdown(ctx); {
	case err == nil:
		if err := client.WaitGone(ctx); err != nil {
			t.Errorf("the daemon of %s does not end: %v", home, err)
		}
	case !errors.Is(err, localclient.ErrNotRunning):
		t.Errorf("the daemon of %s does not end: %v", home, err)
		if p, err := os.FindProcess(agent.Running(d)); err == nil {
			_ = p.Kill() // else it is left, and keeps its files
		}
	}
	if _, err := agent.EndLeftRunning(ctx, d); err != nil {
		t.Errorf("terminals in %s: %v", home, err)
	}
	if left, _ := os.ReadDir(filepath.Join(d.Runtime, "h")); len(left) > 0 {
		t.Errorf("holders left in %s: %v", home, left)
	}
	printed, _ := os.ReadFile(filepath.Join(d.State, "daemon.out")) // not there when the test started the daemon itself
	for _, bad := range []string{"DATA RACE", "panic:", "goroutine "} {
		if strings.Contains(string(printed), bad) {
			t.Errorf("the daemon printed:\n%s", printed)
			break
		}
	}
	check.OK(t, testkit.RemoveHome(home))
}

func dirsOf(home string) dirs.Dirs {
	return dirs.Dirs{Config: filepath.Join(home, "config"), State: filepath.Join(home, "state"),
		Runtime: filepath.Join(home, "run"), Cache: filepath.Join(home, "cache")}
}

// testHost is a reference host on a port of its own, which keeps the port when it is
// started again.
type testHost struct {
	address string // "" before the first start
	shares  string // the file with guests' links; "" is none
	page    string // where guests find the host, as it says; "" leaves it to the machine
	server  *http.Server
	host    *host.Host
}

func (h *testHost) start(token string) error {
	listen := testkit.Listen
	if h.address != "" {
		listen = func() (net.Listener, error) { return net.Listen("tcp", h.address) }
	}
	l, err := listen()
	if err != nil {
		return err
	}
	h.address = l.Addr().String()
	o := host.Options{Token: token, Grace: time.Minute, ShareURL: h.page}
	if h.shares != "" {
		o.Shares = access.OpenShares(access.File(h.shares), func(error) {})
	}
	h.host = host.New(o)
	h.server = &http.Server{Handler: h.host}
	go h.server.Serve(l) // until stop
	return nil
}

func (h *testHost) stop() {
	h.server.Close()
	h.host.Close()
}

// testHosts holds the hosts of all scripts, which run concurrently, by home and name.
type testHosts struct {
	mu  sync.Mutex
	all map[string]*testHost
}

func hostKey(ts *testscript.TestScript, name string) string {
	return ts.Getenv(dirs.HomeVar) + " " + name
}

// start: starthost NAME [TOKEN] starts a host and sets $NAME to its URL; a stopped one
// comes back at the same.
func (h *testHosts) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: starthost NAME [TOKEN]")
	}
	one := &testHost{shares: filepath.Join(ts.Getenv("WORK"), "at-"+args[0], "shares.json")}
	if u := ts.Getenv(args[0]); u != "" {
		one.address = strings.TrimPrefix(u, "ws://")
	}
	ts.Check(one.start(strings.Join(args[1:], "")))
	ts.Setenv(args[0], "ws://"+one.address)
	h.mu.Lock()
	h.all[hostKey(ts, args[0])] = one
	h.mu.Unlock()
	ts.Defer(func() { h.end(ts, args[0]) })
}

// stop: stophost NAME
func (h *testHosts) stop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stophost NAME")
	}
	h.end(ts, args[0])
}

func (h *testHosts) end(ts *testscript.TestScript, name string) {
	h.mu.Lock()
	one := h.all[hostKey(ts, name)]
	delete(h.all, hostKey(ts, name))
	h.mu.Unlock()
	if one != nil {
		one.stop()
	}
}

// await: await REGEXP COMMAND… runs the command until its output matches. With ! it waits
// until it does not.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: await REGEXP COMMAND…")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(patience); ; {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if re.MatchString(out) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%q: after %v still (%v):\n%s", args, patience, err, out)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// capture: capture NAME sets $NAME to the output of the last command.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// exitedWith: status N COMMAND… runs the command, which must exit with N.
func exitedWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if x, ok := err.(interface{ ExitCode() int }); ok {
		got = x.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v: %v", args[1:], err)
	}
	if want, _ := strconv.Atoi(args[0]); got != want {
		ts.Fatalf("exited with %d, want %d", got, want)
	}
}

// unwritten: unwritten COMMAND… runs the command with a standard output that cannot be
// written to. It must say so and exit with 1.
func unwritten(ts *testscript.TestScript, neg bool, args []string) {
	exitedWith(ts, neg, append([]string{"1", "sh", "-c", `"$@" 1</dev/null`, "sh"}, args...))
	if got := ts.ReadFile("stderr"); !strings.Contains(got, "tether: write to standard output: ") {
		ts.Fatalf("standard error is %q", got)
	}
}

// noSecret: nosecret TEXT looks for TEXT, or with @FILE for the secret of the guest's
// link in that file, in every file below the home but the one that holds it on purpose,
// and in the command line and environment of every process.
func noSecret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nosecret TEXT|@FILE")
	}
	text := args[0]
	if file, ok := strings.CutPrefix(text, "@"); ok {
		link, err := ahp.ParseShareLink(strings.TrimSpace(ts.ReadFile(file)))
		ts.Check(err)
		text = link.SecretText()
	}
	var files []string
	ts.Check(filepath.WalkDir(ts.Getenv(dirs.HomeVar), func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(name) != "hosts.json" {
			files = append(files, name)
		}
		return err
	}))
	all, _ := proc.List() // empty where processes cannot be listed
	for _, p := range all {
		for _, what := range []string{"cmdline", "environ"} {
			files = append(files, fmt.Sprintf("/proc/%d/%s", p.Pid, what))
		}
	}
	seen := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err == nil {
			seen++
		}
		if strings.Contains(string(data), text) {
			ts.Fatalf("%s holds the secret", name)
		}
	}
	if seen < 3 {
		ts.Fatalf("looked at %d files only", seen)
	}
}

// gone: gone ID waits until no process of that terminal is left.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone ID")
	}
	for end := time.Now().Add(patience); ; {
		left, err := proc.Tagged(proc.Tag(args[0]))
		if len(left) == 0 || err != nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("still there: %v", left)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// argv prints each argument in hexadecimal, so that no terminal changes it.
func argv() {
	var all string
	for _, a := range os.Args[1:] {
		all += fmt.Sprintf("<%x>", a)
	}
	fmt.Println(all) // at once: a console of Windows paints each piece by itself
}

// flood prints numbered lines: as many as its argument says, or for ever.
func flood() {
	most := -1
	if len(os.Args) > 1 {
		most, _ = strconv.Atoi(os.Args[1])
	}
	for i := 0; i != most; i++ {
		if _, err := fmt.Printf("line %d\n", i); err != nil {
			return
		}
	}
}

// holdLock takes the lock of a file like a daemon, but is none. It ends with its input.
func holdLock() {
	lock, err := ipc.Lock(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = lock.Close()
}

// ignoreTerm ends only by SIGKILL.
func ignoreTerm() {
	ignoreSignals()
	fmt.Println("ready")
	select {}
}

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }
