package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/adopt"
	"tether/agent/config"
	"tether/agent/holder"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/sandbox"
	"tether/platform/shell"
)

// TestMain lets a login shell ask this program for its environment, as it does with
// tether.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == shell.PrintVerb {
		if err := shell.PrintEnvironment(os.Stdout, os.Args[2]); err != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == proc.LimitsVerb {
		os.Exit(proc.BecomeLimited(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "holder" {
		os.Exit(holder.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "adopt-reader" {
		os.Exit(adopt.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		os.Exit(becomeDaemon())
	}
	if len(os.Args) > 1 && os.Args[1] == "intrude" {
		intrude(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "serves" {
		serves(os.Args[2])
	}
	if len(os.Args) > 1 && os.Args[1] == "listens" {
		listens(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "exists" {
		if _, err := os.Stat(os.Args[2]); err != nil {
			os.Exit(3)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.Verb {
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// intrude ends the terminals that no daemon of the home serves, as tether stop does, once
// the address sends no more.
func intrude(address, home string) {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		defer conn.Close() // which says that it has ended
		_, err = io.Copy(io.Discard, conn)
	}
	err = errors.Join(err, os.Setenv(dirs.HomeVar, home))
	d, got := dirs.Get()
	if err = errors.Join(err, got); err == nil {
		_, err = agent.EndLeftRunning(context.Background(), d)
	}
	fmt.Println(err)
}

func TestLinesAndVariables(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	settings := config.Default()
	settings.Policy.HideEnv = []string{"HOME", "OLD"}
	d := start(t, agent.Config{Dirs: home(t), Settings: &settings})
	own := localapi.SpawnRequest{Line: `echo "[$A$B]"; env | grep -c '^HOME='`, Env: []string{"PATH=/usr/bin:/bin", "A=1", "HOME=/h"}, SetEnv: []string{"A=2", "B=3", "B=4"}}
	if got, _ := prints(t, d.client, own); got != "[24]\r\n1\r\n" {
		t.Errorf("the person's line printed %q", got)
	}
	agents := localapi.SpawnRequest{Line: `echo "[$HOME$OLD$NEW]"; env | grep -c '^PAGER=cat'`, SetEnv: []string{"NEW=n", "OLD=o"}, Door: "acp"}
	if got, _ := prints(t, d.client.As("a"), agents); got != "[on]\r\n1\r\n" {
		t.Errorf("an agent's line printed %q", got)
	}
	for name, r := range map[string]localapi.SpawnRequest{
		"a line and a command": {Line: "a", Command: []string{"a"}}, "a line and a shell": {Line: "a", Shell: true},
		"a NUL in a line": {Line: "a\x00b"}, "no name": {Line: "a", SetEnv: []string{"=1"}}, "no value": {Line: "a", SetEnv: []string{"A"}},
	} {
		r.Cwd = "/"
		var e *localapi.Error
		if _, err := d.client.Spawn(t.Context(), r); !errors.As(err, &e) || e.Code != localapi.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := d.client.List(t.Context()); err != nil || len(l.Terminals) != 2 || !strings.HasPrefix(strings.Join(l.Terminals[0].Command, " "), "/bin/sh -c ") {
		t.Errorf("listed %+v, %v", l, err)
	}
}
