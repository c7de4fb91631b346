package main

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// mcpOverTCP starts a daemon that listens on loopback TCP and returns the URL of its /mcp
// and a token for an agent.
func mcpOverTCP(t *testing.T, principal string) (at *url.URL, token string) {
	t.Helper()
	home := newHome(t)
	path := filepath.Join(home, "config", "config.toml")
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte("[local]\nlisten = \"127.0.0.1:0\"\n"), 0o600))
	token, status := command(t, "token", "create", principal)
	if status != 0 {
		t.Fatalf("no token: status %d", status)
	}
	var address []byte
	testkit.Eventually(t, patience, "the daemon listens", func() bool {
		address, _ = os.ReadFile(filepath.Join(dirsOf(home).Runtime, "local.addr"))
		return len(address) > 0
	})
	return &url.URL{Scheme: "http", Host: strings.TrimSpace(string(address)), Path: "/mcp"}, token
}

// relay passes requests on to the daemon with a token, which the conformance suite cannot
// send, and with one text replaced by another. It leaves everything else unchanged, also
// a foreign Host and Origin. It returns its URL.
func relay(t *testing.T, at *url.URL, token string, texts *strings.Replacer) string {
	own := httptest.NewUnstartedServer(nil)
	host := own.Listener.Addr().String()
	own.Config.Handler = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host
		r.Out.Host = strings.Replace(r.In.Host, host, at.Host, 1)
		if r.In.Header.Get("Origin") == "http://"+host {
			r.Out.Header.Del("Origin") // a client of this machine that says where it goes
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
		if body, err := io.ReadAll(r.In.Body); err == nil {
			text := texts.Replace(string(body))
			r.Out.Body, r.Out.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
	}}
	own.Start()
	t.Cleanup(own.Close)
	return own.URL + at.Path
}

// TestMCPConformance runs the official suite against the daemon. Names of the suite's own
// example server become names of ours where that makes a scenario of it. The baseline
// names the rest.
func TestMCPConformance(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	suite := acpTool(t, "mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js")
	baseline := must.Get(filepath.Abs("testdata/mcp-conformance.yaml"))(t)
	daemon, token := mcpOverTCP(t, "conformance")
	id, _ := command(t, "run", "--detach", "--", "sh", "-c", "echo 123; exec sleep 600")
	at := relay(t, daemon, token, strings.NewReplacer("test_simple_text", "list_terminals", "test_error_handling", "read_terminal",
		"test://watched-resource", "terminal:///"+id, "test://static-text", "terminal:///"+id, "test://template/123/data", "terminal:///"+id))
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		cmd := exec.Command(node(t), suite, "server", "--url", at, "--suite", "all", "--spec-version", version, "--expected-failures", baseline)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("version %s: %v\n%s", version, err, out)
		}
		t.Logf("version %s: %s", version, lastPart(string(out), "=== SUMMARY ==="))
	}
}

func lastPart(s, after string) string {
	if _, part, ok := strings.Cut(s, after); ok {
		return part
	}
	return s
}

// TestMCPInspector uses the Inspector as a client of the program and of the daemon.
func TestMCPInspector(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	inspector := acpTool(t, "mcp/node_modules/@modelcontextprotocol/inspector/package.json")
	var about struct{ Bin map[string]string }
	data := must.Get(os.ReadFile(inspector))(t)
	must.Do(t, json.Unmarshal(data, &about))
	program := filepath.Join(filepath.Dir(inspector), about.Bin["mcp-inspector"])
	at, token := mcpOverTCP(t, "inspector")
	tether := must.Get(exec.LookPath("tether"))(t)
	inspect := func(target []string, args ...string) string {
		t.Helper()
		out, err := exec.Command(node(t), append(append([]string{program, "--cli"}, target...), args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v %v: %v\n%s", target, args, err, out)
		}
		return string(out)
	}
	lines := []string{tether, "mcp", "--as", "inspector", "-e", "TETHER_HOME=" + os.Getenv("TETHER_HOME"), "-e", allowRootVar + "=1"}
	if out := inspect(lines, "--method", "tools/list", "--strict"); !strings.Contains(out, `"spawn_background_terminal"`) || !strings.Contains(out, `"wait_terminal"`) {
		t.Errorf("tools: %s", out)
	}
	out := inspect(lines, "--method", "tools/call", "--tool-name", "spawn_background_terminal", "--tool-arg", "cwd=/tmp", "--tool-arg", `command=["echo","hello from the inspector"]`)
	_, id, _ := strings.Cut(out, `\"id\":\"`)
	id, _, _ = strings.Cut(id, `\"`)
	overHTTP := []string{at.String(), "--transport", "http", "--header", "Authorization: Bearer " + token}
	if out := inspect(overHTTP, "--method", "tools/call", "--tool-name", "wait_terminal", "--tool-arg", "terminalId="+id); !strings.Contains(out, "hello from the inspector") || !strings.Contains(out, `\"reason\":\"exit\"`) {
		t.Errorf("%s is %s", id, out)
	}
	if out := inspect(overHTTP, "--method", "resources/read", "--uri", "terminal:///"+id); !strings.Contains(out, `"text": "hello from the inspector\n"`) {
		t.Errorf("resource: %s", out)
	}
}
