//go:build linux

package local_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"tether/agent/devserver"
	"tether/agent/loans"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// shown are the ports of a terminal's loans as a list shows them.
func shownPorts(t localapi.Terminal) (all []string) {
	for _, l := range t.Loans {
		for _, p := range l.Ports {
			text := l.Host + " " + strconv.Itoa(p.Port)
			if p.Auto {
				text += " auto"
			}
			if p.Write {
				text += " write"
			}
			if !p.Until.IsZero() {
				text += " until"
			}
			all = append(all, text)
		}
	}
	return all
}

// A port is lent with the terminal, for a time of its own, and ends alone.
func TestLendAPort(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}, {Name: "office"}}
	ctx := t.Context()
	w.spawn("web")
	want := func(got localapi.Terminal, err error, loans int, ports ...string) {
		t.Helper()
		if err != nil || len(got.Loans) != loans || fmt.Sprint(shownPorts(got)) != fmt.Sprint(ports) {
			t.Errorf("%q, %v; want %q", shownPorts(got), err, ports)
		}
	}
	hour := time.Hour.Milliseconds()
	got, err := w.client.Lend(ctx, "web", localapi.LendRequest{Ports: []string{"3000", "3000"}, ForMs: hour})
	want(got, err, 1, "lab 3000 until")
	if got.Loans[0].Until == nil {
		t.Error("a terminal that was lent for its port is lent for longer")
	}
	got, err = w.client.Lend(ctx, "web", localapi.LendRequest{Host: "office"})
	want(got, err, 2, "lab 3000 until")
	got, err = w.client.Lend(ctx, "web", localapi.LendRequest{Host: "office", Ports: []string{"auto", "3001"}, Write: true, ForMs: hour, To: []string{"bob"}})
	want(got, err, 2, "lab 3000 until", "office 0 auto write until", "office 3001 write until")
	if l := got.Loans[1]; l.Until != nil || len(l.Audience.To) != 1 {
		t.Errorf("the loan is %+v", l)
	}
	got, err = w.client.UnlendPorts(ctx, "web", "office", []string{"3001"})
	want(got, err, 2, "lab 3000 until", "office 0 auto write until")
	got, err = w.client.Lend(ctx, "web", localapi.LendRequest{})
	want(got, err, 2, "lab 3000 until", "office 0 auto write until")
	got, err = w.client.UnlendPorts(ctx, "web", "", []string{"3000", "auto"})
	want(got, err, 2)
}

func TestLendingAPortIsRefused(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}}
	ctx := t.Context()
	w.spawn("web")
	_, over := w.spawn("over")
	over.End(0)
	must.Get(w.client.Lend(ctx, "web", localapi.LendRequest{Ports: []string{"3000"}}))(t)
	many := []string{}
	for i := range loans.MaxPorts {
		many = append(many, strconv.Itoa(4000+i))
	}
	for name, c := range map[string]struct {
		ref  string
		r    localapi.LendRequest
		code localapi.Code
		text string
	}{
		"a word":              {"web", localapi.LendRequest{Ports: []string{"web"}}, localapi.CodeBadRequest, `port "web" must be auto or 1024 to 65535`},
		"a port of a system":  {"web", localapi.LendRequest{Ports: []string{"80"}}, localapi.CodeBadRequest, "port 80 cannot be shared: ports below 1024 belong to servers of the system"},
		"zero":                {"web", localapi.LendRequest{Ports: []string{"0"}}, localapi.CodeBadRequest, `port "0" must be auto or 1024 to 65535`},
		"no port":             {"web", localapi.LendRequest{Ports: []string{"65536"}}, localapi.CodeBadRequest, `port "65536" must be auto or 1024 to 65535`},
		"another spelling":    {"web", localapi.LendRequest{Ports: []string{"03000"}}, localapi.CodeBadRequest, `port "03000" must be auto or 1024 to 65535`},
		"write alone":         {"web", localapi.LendRequest{Write: true}, localapi.CodeBadRequest, "write needs ports"},
		"too many":            {"web", localapi.LendRequest{Ports: append(many, "5000")}, localapi.CodeBadRequest, "17 ports are too many; at most 16"},
		"too many with those": {"web", localapi.LendRequest{Ports: many}, localapi.CodeBadRequest, "too many ports: at most 16 may be shared with one host"},
		"has ended":           {"over", localapi.LendRequest{Ports: []string{"3000"}}, localapi.CodeExited, "has ended, so it has no port to share"},
		"an unknown host":     {"web", localapi.LendRequest{Host: "x", Ports: []string{"3000"}}, localapi.CodeNotPaired, `no host "x" is paired`},
	} {
		if name == "has ended" {
			testkit.Eventually(t, patience, "the exit", func() bool { return must.Get(w.client.Find(ctx, "over"))(t).Exit != nil })
		}
		_, err := w.client.Lend(ctx, c.ref, c.r)
		if e, ok := errors.AsType[*localapi.Error](err); !ok || e.Code != c.code || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.code, c.text)
		}
	}
	for name, c := range map[string]struct {
		host, port, text string
	}{
		"not lent":  {"", "3001", "port 3001 of"},
		"elsewhere": {"x", "3000", `no host "x" is paired`},
		"no number": {"", "-1", `port "-1" must be`},
	} {
		if _, err := w.client.UnlendPorts(ctx, "web", c.host, []string{c.port}); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("unlend, %s: %v, want %s", name, err, c.text)
		}
	}
	w.daemon.noPorts = &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: "it takes none"}
	if _, err := w.client.Lend(ctx, "web", localapi.LendRequest{Ports: []string{"3000"}}); err == nil || !strings.Contains(err.Error(), "it takes none") {
		t.Errorf("a host without ports: %v", err)
	}
	if got := must.Get(w.client.Find(ctx, "web"))(t); fmt.Sprint(shownPorts(got)) != "[lab 3000]" {
		t.Errorf("after all that %q", shownPorts(got))
	}
}

// Only a port that no other program has can be lent, and who has it is said. Agents lend
// none. The list for auto is there at once.
func TestWhosePortIsLent(t *testing.T) {
	d := openReal(t, local.Options{})
	d.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}}
	person := localclient.New(d.socket)
	defer person.Close()
	_, outside, _ := elsewhere(t)
	web, _, own := d.served(t, term.User, "x")
	other, _, others := d.served(t, term.User, "x")
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	free := closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	lend := func(c *localclient.Client, port any) (localapi.Terminal, error) {
		return c.Lend(t.Context(), web, localapi.LendRequest{Ports: []string{fmt.Sprint(port)}})
	}
	for what, c := range map[string]struct {
		port int
		by   string
	}{"no terminal's": {outside, "outside tether, not by a program of " + web}, "another terminal's": {others, ", " + other + ", not by a program of " + web}} {
		if _, err := lend(person, c.port); err == nil || !strings.Contains(err.Error(), c.by) {
			t.Errorf("%s: %v, want %s", what, err, c.by)
		}
	}
	if _, err := lend(person.As("bob"), own); err == nil || !strings.Contains(err.Error(), "agent bob may not lend a terminal") {
		t.Errorf("an agent lends: %v", err)
	}
	if got, err := lend(person, free); err != nil || fmt.Sprint(shownPorts(got)) != fmt.Sprintf("[lab %d]", free) || len(got.Listening) != 1 || got.Listening[0].Port != own {
		t.Errorf("a port on which nothing listens: %+v, %v", got, err)
	}
	must.Get(person.UnlendPorts(t.Context(), web, "", []string{fmt.Sprint(free)}))(t)
	if got, err := lend(person, localapi.AutoPort); err != nil || fmt.Sprint(shownPorts(got)) != fmt.Sprintf("[lab 0 auto lab %d auto]", own) {
		t.Errorf("auto: %+v, %v", shownPorts(got), err)
	}
}

// The ports of a pane are those of its own programs; where those are not known it has
// none.
func TestPortsOfAPane(t *testing.T) {
	d := openReal(t, local.Options{})
	d.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}}
	person := localclient.New(d.socket)
	defer person.Close()
	web, _, own := d.served(t, term.User, "x")
	pid := must.Get(d.pool.As(term.User).Terminal(term.ID(web)))(t).Info().Pid
	pane := func(pid int) string {
		h := must.Get(d.pool.As(term.User).Spawn(term.Spec{Command: []string{"sleep", "1000"}, Cwd: t.TempDir(), Env: d.env, Adopted: &vocab.Adopted{From: "kitty", Program: "kitty", Pid: pid}}))(t)
		return string(h.ID())
	}
	ask := func(ref string, port int) error {
		_, err := person.Lend(t.Context(), ref, localapi.LendRequest{Ports: []string{strconv.Itoa(port)}})
		return err
	}
	if err := ask(pane(pid), own); err != nil {
		t.Errorf("a port of the pane's program: %v", err)
	}
	if err := ask(pane(0), own); err == nil || !strings.Contains(err.Error(), "which does not tell whose programs run there") {
		t.Errorf("a pane with unknown programs: %v", err)
	}
}

// A lent port that another program has by now is closed by the next call of fetch_page,
// and the person sees why.
func TestAPortThatChangedHandsIsClosed(t *testing.T) {
	d := openReal(t, local.Options{})
	_, outside, visits := elsewhere(t)
	web, _, own := d.served(t, term.User, "x")
	h := must.Get(d.pool.As(term.User).Terminal(term.ID(web)))(t)
	must.Do(t, h.LendTo("lab", loans.Change{Ports: []vocab.LentPort{{Port: own}, {Port: outside}}}))
	ask := func(port int) ahp.FetchResult {
		return d.server.FetchAt(t.Context(), "lab", term.ID(web), vocab.LentPort{Port: port}, ahp.FetchParams{Arguments: []byte(`{"path":"/"}`)})
	}
	if a := ask(own); a.Error != "" {
		t.Errorf("its own port: %s", a.Error)
	}
	if a := ask(outside); !strings.Contains(a.Error, "another program has it") || visits.Load() != 0 {
		t.Errorf("another's port: %+v, %d connections", a, visits.Load())
	}
	if loan, _ := h.Loan("lab"); loan.Ports[0].Closed != "" || loan.Ports[1].Closed != devserver.ChangedHands || len(loan.OpenPorts()) != 1 {
		t.Errorf("open are %+v", loan.Ports)
	}
}
