package host_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/host/shells"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func (p *fakeProcess) Command() []string { return []string{"/bin/fake", "-l"} }

func (p *fakeProcess) Foreground() string {
	if front := p.front.Load(); front != nil {
		return *front
	}
	return ""
}

// runs has something run in the foreground; nothing for "".
func (p *fakeProcess) runs(line string) { p.front.Store(&line) }

func (p *fakeProcess) ended() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// A shell whose client is gone ends after the grace time, which counts only while nobody
// is there and nothing runs in it.
func TestShellsWithoutAClientEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		var ended []rights.AuditEvent
		h := testHost(t, host.Options{Runner: runner, ShellGrace: 10 * time.Minute, Audit: func(ev rights.AuditEvent) {
			if ev.Type == rights.AuditDisposed {
				ended = append(ended, ev)
			}
		}})
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		expect := func(when string, want bool) {
			t.Helper()
			if got := runner.procs[uri].ended(); got != want {
				t.Fatalf("%s: it has ended: %v, want %v", when, got, want)
			}
		}
		v := connect(t, h, "first", viewOptions{})
		must.Do(t, v.call(ahp.MethodCreateTerminal, serverTerminal(uri, "first"), nil))
		shell := runner.procs[uri]
		pass(time.Hour)
		expect("with its client", false)
		v.close()
		pass(9 * time.Minute)
		other := connect(t, h, "other", viewOptions{})
		must.Do(t, other.subscribe(uri))
		pass(time.Hour)
		expect("while somebody watches", false)
		other.close()
		pass(9 * time.Minute)
		expect("nine minutes later", false)
		shell.runs("vim")
		pass(time.Hour)
		expect("while something runs", false)
		shell.runs("")
		pass(8 * time.Minute)
		expect("eight minutes after the end of what ran", false)
		pass(5 * time.Minute)
		expect("more than ten minutes after it", true)
		if len(ended) != 1 || ended[0].Terminal != uri || ended[0].Detail == "" {
			t.Errorf("the record says %+v", ended)
		}
		back := connect(t, h, "first", viewOptions{subs: []string{ahp.RootURI}})
		if len(back.root.Terminals) != 0 {
			t.Errorf("it is still listed: %+v", back.root.Terminals)
		}
	})
}

// Without the option a shell waits for its client, however long that takes.
func TestShellsWaitForTheirClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		h := testHost(t, host.Options{Runner: runner})
		v := connect(t, h, "first", viewOptions{})
		must.Do(t, v.call(ahp.MethodCreateTerminal, serverTerminal(uri, "first"), nil))
		v.close()
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		if runner.procs[uri].ended() {
			t.Error("it has ended")
		}
	})
}

// Administrators see whose each shell is and since when nobody is there for it, and end
// it. Others do neither.
func TestListOfShells(t *testing.T) {
	runner := &fakeRunner{procs: map[string]*fakeProcess{}}
	_, url := serve(t, host.Options{Token: secret, Runner: runner, Access: newUsers("observer-ann")})
	v := dial(t, url+"?tkn="+secret, "first", viewOptions{resume: true})
	must.Do(t, v.call(ahp.MethodCreateTerminal, serverTerminal(uri, "first"), nil))
	v.create("ahp-terminal:/lent")
	list := func() []shells.Shell {
		t.Helper()
		r, body := ask(t, url, visit{path: "/shells", token: secret})
		var got struct{ Shells []shells.Shell }
		if err := json.Unmarshal([]byte(body), &got); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", r.StatusCode, body)
		}
		return got.Shells
	}
	runner.procs[uri].runs("make\x1b[2J all")
	all := list()
	if len(all) != 1 || all[0].AloneSince != nil || all[0].Command != "/bin/fake -l" || all[0].Foreground != "make[2J all" || all[0].Owner != "first" {
		t.Fatalf("with its client: %+v", all)
	}
	for _, no := range []struct {
		v    visit
		want int
	}{
		{visit{path: "/shells"}, http.StatusUnauthorized},
		{visit{path: "/shells", token: "observer-ann"}, http.StatusForbidden},
		{visit{method: http.MethodDelete, path: "/shells/" + all[0].ID, token: "observer-ann"}, http.StatusForbidden},
		{visit{method: http.MethodDelete, path: "/shells/" + all[0].ID, token: secret, origin: "http://evil.example"}, http.StatusForbidden},
		{visit{path: "/shells", token: secret, site: "cross-site"}, http.StatusForbidden},
		{visit{method: http.MethodDelete, path: "/shells/pty-none", token: secret}, http.StatusNotFound},
		{visit{method: http.MethodPost, path: "/shells/" + all[0].ID, token: secret}, http.StatusMethodNotAllowed},
	} {
		if r, body := ask(t, url, no.v); r.StatusCode != no.want {
			t.Errorf("%+v: %d %s, want %d", no.v, r.StatusCode, body, no.want)
		}
	}
	before := time.Now()
	v.close()
	testkit.Eventually(t, patience, "it is said that nobody is there", func() bool {
		all = list()
		return len(all) == 1 && all[0].AloneSince != nil
	})
	if since := *all[0].AloneSince; since.Before(before.Add(-time.Second)) || since.After(time.Now()) {
		t.Errorf("nobody is there since %v, want after %v", since, before)
	}
	if r, body := ask(t, url, visit{method: http.MethodDelete, path: "/shells/" + all[0].ID, token: secret}); r.StatusCode != http.StatusNoContent {
		t.Errorf("ending it: %d %s", r.StatusCode, body)
	}
	if !runner.procs[uri].ended() || len(list()) != 0 {
		t.Errorf("it is still there: %+v", list())
	}
}

// A command that runs is shown as running, though a command within it, as in ssh, has
// ended.
func TestACommandWithinAnother(t *testing.T) {
	h := testHost(t, host.Options{})
	f := host.NewFeed(h, uri)
	look := must.Get(host.Catalogue(h).Open(host.IDOf(uri)))(t)
	runs := func() (lines []string) {
		for _, c := range look.Commands() {
			if c.Running {
				lines = append(lines, *c.Line)
			}
		}
		return lines
	}
	f.Act(ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: "ssh box"})
	f.Act(ahp.TerminalCommandExecuted{CommandID: "2", CommandLine: "ls", Meta: ahp.NewCommandMeta(false)})
	f.Act(ahp.TerminalCommandFinished{CommandID: "2"})
	if got := runs(); !slices.Equal(got, []string{"ssh box"}) || look.Info().Running != "ssh box" {
		t.Errorf("while ssh runs: %q, %q", got, look.Info().Running)
	}
	f.Act(ahp.TerminalCommandFinished{CommandID: "1"})
	if got := runs(); len(got) > 0 {
		t.Errorf("after it: %q", got)
	}
}
