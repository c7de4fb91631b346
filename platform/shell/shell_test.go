package shell

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("absolute paths look different there")
	}
	usable := func(path string) bool { return !strings.Contains(path, "missing") }
	for _, c := range []struct {
		candidates []string
		want       string
	}{
		{nil, "/last"},
		{[]string{"/bin/zsh", "/bin/bash"}, "/bin/zsh"},
		{[]string{"", "/bin/bash"}, "/bin/bash"},
		{[]string{"/opt/missing", "/bin/bash"}, "/bin/bash"},
		{[]string{"/usr/sbin/nologin", "/bin/false"}, "/last"},
		{[]string{"zsh", "./zsh"}, "/last"},
	} {
		var asked []func() string
		for _, path := range c.candidates {
			asked = append(asked, func() string { return path })
		}
		if got := choose(usable, "/last", asked...); got != c.want {
			t.Errorf("of %q: %q, want %q", c.candidates, got, c.want)
		}
	}
}

func TestFromPasswd(t *testing.T) {
	lines := "root:x:0:0:root:/root:/bin/bash\n# comment\nbroken:x:7\nnone:x:8:8::/:\n\nu:x:1000:1000:U,,,:/home/u:/usr/bin/zsh\r\nu2:x:1000:1:::/bin/sh"
	for uid, want := range map[int]string{0: "/bin/bash", 1000: "/usr/bin/zsh", 7: "", 8: "", 10: ""} {
		if got := fromPasswd([]byte(lines), uid); got != want {
			t.Errorf("user %d: %q, want %q", uid, got, want)
		}
	}
}

func TestFromDirectory(t *testing.T) {
	for output, want := range map[string]string{
		"UserShell: /bin/zsh\n":                      "/bin/zsh",
		"Name: x\nUserShell: /opt/homebrew/bin/fish": "/opt/homebrew/bin/fish",
		"No such key: UserShell\n":                   "",
		"":                                           "",
	} {
		if got := fromDirectory([]byte(output)); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

func TestLoginIsAProgram(t *testing.T) {
	path := Login()
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || !filepath.IsAbs(path) {
		t.Errorf("Login() = %q: %v", path, err)
	}
}
