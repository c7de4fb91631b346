package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Without npm, or without a network for it, the build continues without the page's
// packages, and says so; make web fails. The packages are put where they are embedded,
// and are not requested again until other versions are needed.
func TestScriptsOfThePage(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	root := t.TempDir()
	place := func(name string, data []byte, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, data, mode))
	}
	for name, from := range map[string]string{"scripts/web.sh": "../../scripts/web.sh", "host/web/package.json": "package.json", "host/web/package-lock.json": "package-lock.json"} {
		data := must.Get(os.ReadFile(from))(t)
		place(name, data, 0o755)
	}
	vendor := filepath.Join(root, "host/web/static/vendor")
	must.Do(t, os.MkdirAll(vendor, 0o755))
	// These are the only programs that the script finds, so that there is no npm.
	for _, name := range []string{"bash", "cp", "cmp", "dirname", "mkdir", "sed", "timeout", "cat", "rm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		must.Do(t, os.MkdirAll(filepath.Join(root, "path"), 0o755))
		must.Do(t, os.Symlink(path, filepath.Join(root, "path", name)))
	}
	script := func(args ...string) (said string, ok bool) {
		c := exec.Command(filepath.Join(root, "path/bash"), append([]string{filepath.Join(root, "scripts/web.sh")}, args...)...)
		c.Env = []string{"PATH=" + filepath.Join(root, "path")}
		out, err := c.CombinedOutput()
		return string(out), err == nil
	}
	has := func() []string {
		all := must.Get(filepath.Glob(filepath.Join(vendor, "*")))(t)
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		return all
	}
	for what, npm := range map[string]string{"no npm": "", "an npm without a network": "#!" + filepath.Join(root, "path/bash") + "\nexit 1\n"} {
		if npm != "" {
			place("path/npm", []byte(npm), 0o755)
		}
		if said, ok := script(); !ok || !strings.Contains(said, "plain page") {
			t.Errorf("%s: the build goes on %v, and it says %q", what, ok, said)
		}
		if said, ok := script("--need"); ok || !strings.Contains(said, "plain page") {
			t.Errorf("%s: make web succeeds: %q", what, said)
		}
		if got := has(); len(got) != 0 {
			t.Errorf("%s leaves %q", what, got)
		}
		_ = os.Remove(filepath.Join(root, "path/npm"))
	}

	const npm = `
mkdir -p node_modules/@xterm/xterm/css node_modules/@xterm/xterm/lib node_modules/@xterm/addon-search/lib
for f in xterm/css/xterm.css xterm/LICENSE xterm/lib/xterm.mjs addon-search/lib/addon-search.mjs; do
	echo "$f" >node_modules/@xterm/$f
done
echo "//# sourceMappingURL=xterm.mjs.map" >>node_modules/@xterm/xterm/lib/xterm.mjs
echo asked >>../asked
`
	place("path/npm", []byte("#!"+filepath.Join(root, "path/bash")+npm), 0o755)
	for range 2 {
		if said, ok := script("--need"); !ok || said != "" {
			t.Errorf("with npm: %v, %q", ok, said)
		}
	}
	if got := strings.Join(has(), " "); got != ".versions LICENSE addon-search.mjs xterm.css xterm.mjs" {
		t.Errorf("it leaves %s", got)
	}
	asked := func() int {
		data := must.Get(os.ReadFile(filepath.Join(root, "bin/tools/asked")))(t)
		return strings.Count(string(data), "asked")
	}
	if n := asked(); n != 1 {
		t.Errorf("npm was asked %d times for the same", n)
	}
	if data, err := os.ReadFile(filepath.Join(vendor, "xterm.mjs")); err != nil || string(data) != "xterm/lib/xterm.mjs\n" {
		t.Errorf("the page gets %q, %v", data, err)
	}
	place("host/web/package-lock.json", []byte("{}"), 0o644)
	if said, ok := script("--need"); !ok || asked() != 2 {
		t.Errorf("with other versions: %v, %q, npm was asked %d times", ok, said, asked())
	}
}
