package ahp_test

import (
	"strings"
	"testing"

	"tether/ahp"
)

func TestDirectories(t *testing.T) {
	for path, uri := range map[string]string{
		"/": "file:///", "/usr": "file:///usr", "/a b/ü%": "file:///a%20b/%C3%BC%25", "/x?y#z": "file:///x%3Fy%23z", `C:\Users\me`: "file:///C:/Users/me",
		"//server/x": "file:////server/x",
	} {
		if got := ahp.FileURI(path); got != uri {
			t.Errorf("the URI of %s is %s, want %s", path, got, uri)
		}
		if got := ahp.PathOf(uri); got != path {
			t.Errorf("the path of %s is %s, want %s", uri, got, path)
		}
	}
	for uri, path := range map[string]string{
		"file://localhost/usr": "/usr", "": "", "/plain": "/plain", "file://elsewhere/x": "file://elsewhere/x", "vscode-remote://x/y": "vscode-remote://x/y",
		"file:": "file:", "%": "%", "file:///c:": "c:", "file:///ab:/x": "/ab:/x",
	} {
		if got := ahp.PathOf(uri); got != path {
			t.Errorf("the path of %s is %s, want %s", uri, got, path)
		}
	}
	for path, want := range map[string]string{"": "", "file:///usr": "file:///usr", "relative": "relative", "/" + strings.Repeat("ü", ahp.MaxCwd/3): ""} {
		if got := ahp.FileURI(path); got != want {
			t.Errorf("the URI of %.20s is %.20s, want %s", path, got, want)
		}
	}
}
