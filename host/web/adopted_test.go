package web_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A dev server that has been running in a pane of tmux is adopted and lent: an agent at
// the host reads what it printed before, and gets the errors that it prints later.
func TestDevServerOfAPane(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for _, program := range []string{"tmux", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program)
		}
	}
	packages, err := filepath.Abs("../../bin/tools/watchers/node_modules")
	if _, missing := os.Stat(filepath.Join(packages, "vite")); err != nil || missing != nil {
		t.Skip("no vite; scripts/test-tools.sh installs it where it can")
	}
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.Do(t, os.Symlink(packages, filepath.Join(dir, "node_modules")))
	for name, text := range map[string]string{
		"package.json": `{"private": true, "scripts": {"dev": "vite"}}`,
		"index.html":   `<!doctype html><title>shapes</title><script type="module" src="/main.ts"></script>`,
		"main.ts":      "export const width = 1\n\nexport function area( {\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("TMUX_TMPDIR", t.TempDir())
	port := fmt.Sprint(testkit.FreePort(t))
	must.Do(t, exec.Command("tmux", "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "30", "-c", dir, "node_modules/.bin/vite --host 127.0.0.1 --port "+port).Run())
	t.Cleanup(func() { _ = exec.Command("tmux", "kill-server").Run() })
	url := "http://127.0.0.1:" + port + "/"
	status := func(url string) int {
		answer, err := http.Get(url)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	testkit.Eventually(t, testkit.Patience, "vite serves", func() bool { return status(url) == http.StatusOK })

	s := newShop(t)
	s.tether(dir, "adopt", "tmux:%0", "--name", "web")
	s.tether(dir, "lend", "web")
	var list []struct{ ID, Adopted string }
	testkit.Eventually(t, testkit.Patience, "the host has it", func() bool {
		s.use(t, "list_terminals", nil, &list)
		return len(list) == 1
	})
	if list[0].Adopted != "tmux" {
		t.Errorf("an agent at the host is told %+v", list)
	}
	if reason := s.wait(t, list[0].ID, "ready in"); reason != "pattern" {
		t.Fatalf("the wait for what it printed before ended with %q", reason)
	}
	if status(url+"main.ts") != http.StatusInternalServerError {
		t.Fatal("a module with a mistake is served")
	}
	testkit.Eventually(t, testkit.Patience, "the error is a problem at the host", func() bool {
		all := s.problems(t, list[0].ID)
		return len(all) > 0 && all[0].File == filepath.Join(dir, "main.ts") && all[0].Line > 0
	})
	s.tether(dir, "unadopt", "web")
	if status(url) != http.StatusOK {
		t.Error("the server has ended with the adoption")
	}
}
