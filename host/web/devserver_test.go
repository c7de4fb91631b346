package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// pages are the files of two small projects in one directory: a page of Vite, and one of
// Next.js. Each fails again and again, since an error is lost before the page is
// connected to its server.
var pages = map[string]string{
	"package.json":   `{"scripts": {"vite": "vite", "next": "next dev"}}`,
	"index.html":     `<!doctype html><title>shapes</title><script type="module" src="/src/main.ts"></script>`,
	"src/main.ts":    "import { area } from \"./shape\"\n\nsetInterval(() => document.body.append(String(area({}))), 300)\n",
	"src/shape.ts":   "export interface Sized { width?: { value: number } }\n\nexport function area(s: Sized): number {\n  return s.width!.value ** 2\n}\n",
	"app/layout.jsx": "export default function Layout({ children }) {\n  return <html><body>{children}</body></html>\n}\n",
	"app/page.jsx": "\"use client\"\nimport { useEffect } from \"react\"\n\nexport default function Page() {\n  useEffect(() => {\n" +
		"    setInterval(() => { throw new TypeError(\"no width\") }, 300)\n  }, [])\n  return <main>shapes</main>\n}\n",
}

// pageProject writes the pages beside what the test tools have installed, since Next.js
// takes no packages from elsewhere.
func pageProject(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(must.Get(filepath.Abs("../../bin/tools/pages"))(t))
	for _, name := range []string{"vite", "next"} {
		if err == nil {
			_, err = os.Stat(filepath.Join(dir, "node_modules", name))
		}
		if err != nil {
			t.Skipf("no %s; scripts/test-tools.sh installs it where it can", name)
		}
	}
	for name, text := range pages {
		name = filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return dir
}

// shop runs the programs as people do: tether-host, and tether paired with it.
type shop struct {
	t     *testing.T
	bin   string
	env   []string
	page  string             // of the host
	agent *sdk.ClientSession // of an agent at the host
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, bin: t.TempDir()}
	must.Do(t, testkit.Build(s.bin))
	home := must.Get(os.MkdirTemp("/tmp", "tp"))(t) // short enough for a socket
	t.Cleanup(func() { os.RemoveAll(home) })
	s.env = append(os.Environ(), "TETHER_HOME="+home, "TETHER_ALLOW_ROOT=1", "TETHER_LEND_AS_ROOT=true", "NEXT_TELEMETRY_DISABLED=1", "npm_config_update_notifier=false")
	server := exec.Command(filepath.Join(s.bin, "tether-host"), "--listen", "127.0.0.1:0", "--without-token")
	server.Env = s.env
	out := must.Get(server.StdoutPipe())(t)
	testkit.StartTree(t, server)
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if !ok {
		t.Fatalf("the host says %q", line)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the host
	s.page = "http" + strings.TrimPrefix(url, "ws")
	s.tether("", "pair", "--without-token", url)
	t.Cleanup(func() { s.tether("", "stop") })
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	s.agent = must.Get(c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.page + "/mcp", MaxRetries: -1}, nil))(t)
	t.Cleanup(func() { s.agent.Close() })
	return s
}

// tether runs the program to its end and returns what it printed.
func (s *shop) tether(dir string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(s.bin, "tether"), args...)
	c.Dir, c.Env = dir, s.env
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tether %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// found is a problem as an agent sees it.
type found struct {
	Tool, File, Severity, Message string
	Line, Column                  int
}

// wait waits, as an agent at the host, for a line of a terminal.
func (s *shop) wait(t *testing.T, terminal, pattern string) string {
	t.Helper()
	var answer struct{ Reason string }
	s.use(t, "wait_terminal", map[string]any{"terminalId": terminal, "pattern": pattern, "timeoutMs": testkit.Patience.Milliseconds()}, &answer)
	return answer.Reason
}

// problems asks the host for those of a terminal.
func (s *shop) problems(t *testing.T, terminal string) []found {
	t.Helper()
	var answer struct{ Problems []found }
	s.use(t, "problems", map[string]any{"terminalId": terminal}, &answer)
	return answer.Problems
}

// use calls one of the host's tools.
func (s *shop) use(t *testing.T, tool string, args map[string]any, into any) {
	t.Helper()
	r, err := s.agent.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil || r.IsError {
		t.Fatalf("%s: %v %s", tool, err, must.Get(json.Marshal(r))(t))
	}
	must.Do(t, json.Unmarshal([]byte(r.Content[0].(*sdk.TextContent).Text), into))
}

// show opens a URL in a browser until the test ends, once it answers.
func show(t *testing.T, url string) {
	t.Helper()
	testkit.Eventually(t, testkit.Patience, url+" answers", func() bool {
		c := http.Client{Timeout: testkit.Patience}
		answer, err := c.Get(url)
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
	profile := must.Get(os.MkdirTemp("", "browser"))(t)
	c := exec.Command(chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0",
		"--user-data-dir="+profile, url)
	kill := testkit.StartTree(t, c)
	t.Cleanup(func() { kill(); os.RemoveAll(profile) })
}

// An error in a page of Vite, and in one of Next.js, which a browser shows, is a problem
// with its file and line for an agent at the host.
func TestErrorsOfPages(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if os.Getenv("TETHER_SCREENSHOTS") == "" {
		t.Skip("make test-web runs it; a browser takes long")
	}
	chromium(t)
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("no npm")
	}
	dir := pageProject(t)
	s := newShop(t)
	for _, c := range []struct {
		name, file, message string
		line, column        int
	}{
		{"vite", "src/shape.ts", "TypeError: Cannot read properties of undefined (reading 'value')", 4, 18},
		{"next", "app/page.jsx", "TypeError: no width", 6, 31},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the terminal has\n%s", s.tether(dir, "read", c.name))
				}
			})
			port := fmt.Sprint(testkit.FreePort(t))
			s.tether(dir, "run", "-d", "--forward-browser", "--name", c.name, "--", "npm", "run", c.name, "--", "--port", port)
			show(t, "http://localhost:"+port+"/")
			want := found{"browser", filepath.Join(dir, filepath.FromSlash(c.file)), "error", c.message, c.line, c.column}
			if reason := s.wait(t, c.name, "Unhandled error|Uncaught"); reason != "pattern" {
				t.Fatalf("the wait ended with %q", reason)
			}
			testkit.Eventually(t, testkit.Patience, "the error is a problem", func() bool {
				all := s.problems(t, c.name)
				if len(all) > 0 && (len(all) != 1 || all[0] != want) {
					t.Fatalf("%+v, want %+v", all, want)
				}
				return len(all) > 0
			})
			t.Logf("known after %v", time.Since(began))
		})
	}
}
