package dirs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
)

// env makes an environment of NAME=value.
func env(entries ...string) func(string) string {
	return func(name string) string {
		for _, e := range entries {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestFor(t *testing.T) {
	long := "/" + strings.Repeat("very-long/", 8) + "home"
	for _, c := range []struct {
		name, goos string
		env        []string
		want       dirs.Dirs
	}{
		{"plain linux", "linux", []string{"HOME=/home/u"}, dirs.Dirs{
			Config: "/home/u/.config/tether", State: "/home/u/.local/state/tether",
			Runtime: "/home/u/.local/state/tether/run", Cache: "/home/u/.cache/tether",
		}},
		{"linux with XDG", "linux", []string{
			"HOME=/home/u", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s/", "XDG_CACHE_HOME=/k", "XDG_RUNTIME_DIR=/run/user/1000",
		}, dirs.Dirs{Config: "/c/tether", State: "/s/tether", Runtime: "/run/user/1000/tether", Cache: "/k/tether"}},
		{"relative XDG is ignored", "linux", []string{"HOME=/home/u", "XDG_CONFIG_HOME=c", "XDG_RUNTIME_DIR=./r"}, dirs.Dirs{
			Config: "/home/u/.config/tether", State: "/home/u/.local/state/tether",
			Runtime: "/home/u/.local/state/tether/run", Cache: "/home/u/.cache/tether",
		}},
		{"another unix", "freebsd", []string{"HOME=/home/u"}, dirs.Dirs{
			Config: "/home/u/.config/tether", State: "/home/u/.local/state/tether",
			Runtime: "/home/u/.local/state/tether/run", Cache: "/home/u/.cache/tether",
		}},
		{"macOS", "darwin", []string{"HOME=/Users/u", "XDG_CONFIG_HOME=/c", "TMPDIR=/var/folders/x"}, dirs.Dirs{
			Config: "/Users/u/Library/Application Support/tether", State: "/Users/u/Library/Application Support/tether/state",
			Runtime: "/Users/u/Library/Application Support/tether/run", Cache: "/Users/u/Library/Caches/tether",
		}},
		{"windows", "windows", []string{`APPDATA=C:\Users\u\AppData\Roaming`, `LOCALAPPDATA=C:\Users\u\AppData\Local\`}, dirs.Dirs{
			Config: `C:\Users\u\AppData\Roaming\tether`, State: `C:\Users\u\AppData\Local\tether\state`,
			Runtime: `C:\Users\u\AppData\Local\tether\run`, Cache: `C:\Users\u\AppData\Local\tether\cache`,
		}},
		{"one home", "linux", []string{"TETHER_HOME=/t/", "HOME=/home/u", "XDG_RUNTIME_DIR=/run/user/1000"}, dirs.Dirs{
			Config: "/t/config", State: "/t/state", Runtime: "/t/run", Cache: "/t/cache",
		}},
		{"one home is enough", "windows", []string{`TETHER_HOME=\\server\t`}, dirs.Dirs{
			Config: `\\server\t\config`, State: `\\server\t\state`, Runtime: `\\server\t\run`, Cache: `\\server\t\cache`,
		}},
		{"too long for sockets", "linux", []string{"TETHER_HOME=" + long}, dirs.Dirs{
			Config: long + "/config", State: long + "/state", Runtime: "/tmp/tether-b4bc576c5cf2d47c", Cache: long + "/cache",
		}},
		{"too long for sockets on macOS", "darwin", []string{"HOME=/Users/a.user.with.quite.a.long.name"}, dirs.Dirs{
			Config:  "/Users/a.user.with.quite.a.long.name/Library/Application Support/tether",
			State:   "/Users/a.user.with.quite.a.long.name/Library/Application Support/tether/state",
			Runtime: "/tmp/tether-8754025f5af93eb6", Cache: "/Users/a.user.with.quite.a.long.name/Library/Caches/tether",
		}},
	} {
		got, err := dirs.For(c.goos, env(c.env...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		check.Equal(t, fmt.Sprintf("%s:", c.name), c.want, got)
	}
}

func TestForNamesMissingParts(t *testing.T) {
	for _, c := range []struct {
		goos string
		env  []string
		says string
	}{
		{"linux", nil, "HOME is not set"},
		{"linux", []string{"HOME=u"}, `HOME="u"`},
		{"darwin", nil, "HOME is not set"},
		{"windows", []string{`APPDATA=C:\x`, "HOME=/home/u"}, "LOCALAPPDATA is not set"},
		{"windows", []string{`APPDATA=C:x`, `LOCALAPPDATA=C:\x`}, `APPDATA="C:x"`},
		{"linux", []string{"HOME=/home/u", "TETHER_HOME=t"}, `TETHER_HOME="t"`},
		{"windows", []string{"TETHER_HOME=/t"}, `TETHER_HOME="/t"`},
	} {
		d, err := dirs.For(c.goos, env(c.env...))
		if err == nil || !strings.Contains(err.Error(), c.says) || d != (dirs.Dirs{}) {
			t.Errorf("%s with %q: %+v, %v; want %q", c.goos, c.env, d, err, c.says)
		}
	}
}

// In any environment, a socket in the runtime directory fits into the system's limit.
func FuzzRuntimeIsShort(f *testing.F) {
	f.Add("linux", "/home/u", "/run/user/1")
	f.Add("darwin", "/"+strings.Repeat("x", 60), "")
	f.Fuzz(func(t *testing.T, goos, home, runtimeDir string) {
		d, err := dirs.For(goos, env("HOME="+home, "XDG_RUNTIME_DIR="+runtimeDir))
		if err != nil || goos != "linux" && goos != "darwin" {
			return
		}
		if n := len(d.Runtime) + 1 + dirs.MaxSocketName; n > 107 || goos == "darwin" && n > 103 {
			t.Errorf("%s: %d bytes: %q", goos, n, d.Runtime)
		}
		if d.Runtime == d.State || d.Runtime == d.Config {
			t.Errorf("%s: not apart: %+v", goos, d)
		}
	})
}

func TestGet(t *testing.T) {
	home := t.TempDir()
	t.Setenv(dirs.HomeVar, home)
	d, err := dirs.Get()
	if err != nil || d.Config != filepath.Join(home, "config") {
		t.Errorf("with %s: %+v, %v", dirs.HomeVar, d, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	t.Setenv(dirs.HomeVar, "")
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", "")
	if d, err = dirs.Get(); err != nil || !strings.HasPrefix(d.State, home) {
		t.Errorf("with HOME=%s: %+v, %v", home, d, err)
	}
}

func TestUsualRuntimeDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no user numbers on Windows")
	}
	parent := t.TempDir()
	own := filepath.Join(parent, strconv.Itoa(os.Getuid()))
	if got := dirs.UsualRuntimeDir(parent); got != "" {
		t.Errorf("missing: %q", got)
	}
	must.Do(t, os.Mkdir(own, 0o700))
	if got := dirs.UsualRuntimeDir(parent); got != own {
		t.Errorf("there: %q, want %q", got, own)
	}
	must.Do(t, os.Chmod(own, 0o755))
	if got := dirs.UsualRuntimeDir(parent); got != "" {
		t.Errorf("open to others: %q", got)
	}
}
