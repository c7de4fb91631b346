//go:build linux

package local_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// askVar makes the test's program ask, without a name, whether it may see the
// questions.
const askVar = "TETHER_TEST_ASK_AT"

// sayVar makes it say what would get it more: "as NAME", or "approved".
const sayVar = "TETHER_TEST_SAY"

func TestMain(m *testing.M) {
	if socket := os.Getenv(askVar); socket != "" {
		c, ctx := local.NewClient(socket), context.Background()
		var err error
		switch what, name, _ := strings.Cut(os.Getenv(sayVar), " "); what {
		case "as":
			_, err = c.As(name).Approvals(ctx, nil)
		case "approved":
			_, err = c.Spawn(ctx, local.SpawnRequest{Command: []string{"rm", "x"}, Cwd: "/", Door: "acp", Approved: "editor"})
		default:
			_, err = c.Approvals(ctx, nil)
		}
		if err != nil {
			os.Stdout.WriteString(err.Error())
		} else {
			os.Stdout.WriteString("allowed")
		}
		return
	}
	os.Exit(m.Run())
}

// A program that an agent has started acts as that agent, though it does not
// say so, and though it has left its parent and its session. With real
// terminals and processes.
func TestOriginLowers(t *testing.T) {
	testkit.Leaks(t)
	socket := filepath.Join(testkit.Home(t), "run", "daemon.sock")
	pool := term.NewPool(term.Options{})
	server := local.NewServer(local.Options{Access: pool.As, Daemon: &fakeDaemon{}})
	l, err := ipc.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := pool.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := append(proc.WithoutTag(os.Environ()), askVar+"="+socket)
	const far = `(setsid sh -c '"$0" > out.tmp; mv out.tmp out' "$SELF" &) ; sleep 1000`
	for _, c := range []struct {
		name, line string
		owner      term.Actor
		promote    bool
		want       string
	}{
		{"the person's", `"$SELF" > out.tmp; mv out.tmp out`, term.User, false, "allowed"},
		{"an agent's", `"$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "agent bob may not"},
		{"far from the person", far, term.User, false, "allowed"},
		{"far from an agent", far, term.Agent("bob"), false, "agent bob may not"},
		{"an agent's that says it is another's", `TETHER_TEST_SAY='as eve' "$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "agent bob may not act as agent eve"},
		{"an agent's that says so of itself", `TETHER_TEST_SAY='as eve' "$SELF" > out.tmp; mv out.tmp out`, term.Agent("eve"), false, "agent eve may not GET"},
		{"an agent's that says no name", `TETHER_TEST_SAY='as mcp' "$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "agent bob may not GET"},
		{"the person's that says it is an agent's", `TETHER_TEST_SAY='as eve' "$SELF" > out.tmp; mv out.tmp out`, term.User, false, "agent eve may not GET"},
		{"an agent's that says it was approved", `TETHER_TEST_SAY=approved "$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "what an agent has started approves"},
		{"an agent's that was promoted", "until test -e promoted; do sleep 0.01; done; " + far, term.Agent("bob"), true, "agent bob may not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := pool.As(c.owner).Spawn(term.Spec{Command: []string{"sh", "-c", c.line}, Cwd: dir, Env: append(env, "SELF="+self)})
			if err != nil {
				t.Fatal(err)
			}
			if c.promote {
				err := h.Promote()
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "promoted"), nil, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(dir, "out")
			testkit.Eventually(t, patience, "an answer", func() bool { _, err := os.Stat(out); return err == nil })
			text, err := os.ReadFile(out)
			if err != nil || !strings.HasPrefix(string(text), c.want) {
				t.Errorf("%q, %v; want %q", text, err, c.want)
			}
			if err := os.Remove(out); err != nil {
				t.Error(err)
			}
		})
	}
	// Who was not started in a terminal at all is the person.
	cmd := exec.Command(self)
	cmd.Env = env
	if text, err := cmd.Output(); err != nil || !bytes.HasPrefix(text, []byte("allowed")) {
		t.Errorf("from outside: %q, %v", text, err)
	}
}
