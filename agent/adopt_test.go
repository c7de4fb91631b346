package agent_test

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// mux is a server of tmux of a test.
type mux struct {
	t   *testing.T
	dir string // with its socket
}

// startMux starts a server with one pane, in which a line for the shell runs.
func startMux(t *testing.T, cwd, line string) *mux {
	t.Helper()
	testkit.Unix(t, testkit.Programs)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here")
	}
	m := &mux{t, t.TempDir()}
	t.Setenv("TMUX_TMPDIR", m.dir)
	t.Setenv("TMUX", "")
	m.do("-f", "/dev/null", "new-session", "-d", "-s", "s", "-x", "80", "-y", "24", "-c", cwd, line)
	t.Cleanup(func() { _ = exec.Command("tmux", "kill-server").Run() }) // it may have ended with its pane
	return m
}

func (m *mux) do(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// readers makes a daemon's configuration one that can adopt panes.
func readers(c agent.Config) agent.Config {
	c.Reader = []string{c.Holder.Path, "adopt-reader"}
	return c
}

func textOf(t *testing.T, c *localclient.Client, ref string) string {
	t.Helper()
	body := must.Get(c.Read(t.Context(), ref, localclient.ReadOptions{}, nil))(t)
	defer body.Close()
	return strings.ReplaceAll(string(must.Get(io.ReadAll(body))(t)), "\r", "")
}

// Daemons are killed at any moment while an adopted pane prints, and each next one goes
// on: no line is missing, and none is there twice. The pane's end is the terminal's.
func TestAdoptedPaneOutlivesKilledDaemons(t *testing.T) {
	m := startMux(t, "/", `i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo "line $i"; [ $((i%10)) = 0 ] && sleep 0.02; done; read x`)
	d := home(t)
	self := withHolders(t, d).Holder.Path
	client := localclient.New(agent.SocketPath(d))
	defer client.Close()
	var id string
	for n := range 4 {
		c := exec.Command(self, "daemon")
		out := must.Get(c.StdoutPipe())(t)
		must.Do(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill() }) // left by a failed test
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("it said %q, %v", line, err)
		}
		if id == "" {
			id = must.Get(client.Adopt(t.Context(), localapi.AdoptRequest{Pane: "tmux:%0", Name: "counter"}))(t).ID
		}
		if n < 3 {
			before := must.Get(client.Find(t.Context(), id))(t).Bytes
			testkit.Eventually(t, patience, "it prints on", func() bool {
				x, err := client.Find(t.Context(), id)
				return err == nil && (x.Bytes > before+1500 || strings.Contains(textOf(t, client, id), "line 1500\n"))
			})
			must.Do(t, c.Process.Kill())
			_ = c.Wait()
			continue
		}
		testkit.Eventually(t, patience, "the last line", func() bool { return strings.Contains(textOf(t, client, id), "line 1500\n") })
		for i, line := range regexp.MustCompile(`(?m)line (\d+)$`).FindAllStringSubmatch(textOf(t, client, id), -1) {
			if line[1] != strconv.Itoa(i+1) {
				t.Errorf("in place of line %d is %q", i+1, line[0])
				break
			}
		}
		m.do("send-keys", "-t", "%0", "Enter")
		testkit.Eventually(t, patience, "the pane's end ends the terminal", func() bool {
			x, err := client.Find(t.Context(), id)
			return err == nil && x.Exit != nil
		})
		must.Do(t, client.Shutdown(t.Context()))
		must.Do(t, c.Wait())
	}
}

// A pane is the person's to adopt, once. It is shared with nobody, and never where a rule
// forbids it; a private one is not seen by agents. Unadopting it leaves tmux no client.
func TestWhoAdoptsAPane(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	m := startMux(t, dir, "printf '\\033]2;a title\\n\\033[31m\\a'; exec sleep 1000")
	settings := config.Default()
	settings.Lend.Rules = []config.LendRule{{Effect: config.LendNever, Directories: []string{dir}}}
	c := readers(withHolders(t, home(t)))
	c.Settings = &settings
	d := start(t, c)
	defer d.stop()
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{URL: startHost(t, "secret"), Name: "host", Token: "secret"}))(t)
	code := func(err error) localapi.Code {
		own, _ := errors.AsType[*localapi.Error](err)
		if own == nil {
			return ""
		}
		return own.Code
	}
	ask := localapi.AdoptRequest{Pane: "tmux:%0", Name: "secret"}
	if _, err := d.client.As("bob").Adopt(t.Context(), ask); code(err) != localapi.CodeDenied {
		t.Errorf("an agent adopts: %v", err)
	}
	if _, err := d.client.As("bob").Panes(t.Context()); code(err) != localapi.CodeDenied {
		t.Errorf("an agent lists panes: %v", err)
	}
	for pane, want := range map[string]localapi.Code{"tmux:%9": localapi.CodeNoTerminal, "": localapi.CodeBadRequest, "%0": localapi.CodeBadRequest, "screen:1": localapi.CodeDenied, "tmux:%0\n": localapi.CodeBadRequest, strings.Repeat("x:", 5000): localapi.CodeBadRequest} {
		if _, err := d.client.Adopt(t.Context(), localapi.AdoptRequest{Pane: pane}); code(err) != want {
			t.Errorf("%.40q: %v (%s), want %s", pane, err, code(err), want)
		}
	}
	if _, err := d.client.Adopt(t.Context(), localapi.AdoptRequest{Pane: "tmux:%0", Name: "a\n\x1b[31m"}); code(err) != localapi.CodeBadRequest {
		t.Errorf("a name with sequences: %v", err)
	}
	x := must.Get(d.client.Adopt(t.Context(), ask))(t)
	if len(x.LentTo) > 0 || x.Adopted == nil || !x.Adopted.Exact || x.Cwd != dir {
		t.Errorf("%+v", x)
	}
	if all := must.Get(d.client.Panes(t.Context()))(t).Panes; len(all) != 1 || all[0].Terminal != x.ID || strings.ContainsAny(all[0].Title, "\n\x1b") {
		t.Errorf("%+v", all)
	}
	if _, err := d.client.Adopt(t.Context(), ask); code(err) != localapi.CodeExists {
		t.Errorf("it is adopted twice: %v", err)
	}
	if _, err := d.client.Lend(t.Context(), x.ID, localapi.LendRequest{}); code(err) != localapi.CodeDenied {
		t.Errorf("it is lent: %v", err)
	}
	if _, err := d.client.Declare(t.Context(), localapi.DeclareRequest{Do: localapi.DeclareRestart, Names: []string{"secret"}}); code(err) != localapi.CodeDenied || !strings.Contains(err.Error(), "tmux:%0") {
		t.Errorf("it is started again: %v", err)
	}
	if _, err := d.client.Promote(t.Context(), x.ID); code(err) != localapi.CodeDenied {
		t.Errorf("it is promoted: %v", err)
	}
	list := func() string {
		r := must.Get(d.asAgent("bob").CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"}))(t)
		return r.Content[0].(*sdk.TextContent).Text
	}
	if text := list(); !strings.Contains(text, `"adopted":"tmux:%0"`) && !strings.Contains(text, `"adopted": "tmux:%0"`) {
		t.Errorf("an agent is not told that it is adopted: %s", text)
	}
	if s := must.Get(d.client.Status(t.Context()))(t); len(s.Adopted) != 1 || s.Adopted[0].Name != "secret" {
		t.Errorf("status has %+v", s.Adopted)
	}
	must.Get(d.client.Unadopt(t.Context(), x.ID))(t)
	testkit.Eventually(t, patience, "tmux has no client", func() bool { return m.do("list-clients") == "" })
	must.Get(d.client.Adopt(t.Context(), localapi.AdoptRequest{Pane: "tmux:%0", Name: "hidden", Private: true}))(t)
	if text := list(); strings.Contains(text, "hidden") {
		t.Errorf("an agent sees a private pane: %s", text)
	}
}
