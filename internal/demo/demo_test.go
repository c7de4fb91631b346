package demo_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/internal/demo"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestServe(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, demo.Page), []byte(text), 0o600))
	}
	write("one")
	ctx, cancel := context.WithCancel(t.Context())
	var log testkit.Output
	ended := make(chan error, 1)
	go func() { ended <- demo.Serve(ctx, dir, &log) }()
	sees := func(pattern string) string {
		t.Helper()
		re := regexp.MustCompile(pattern)
		testkit.Eventually(t, testkit.Patience, pattern, func() bool { return re.MatchString(log.String()) })
		return re.FindString(log.String())
	}
	url := strings.TrimPrefix(sees(`listening on http://[^\n]+`), "listening on ")
	get := func(path string) (int, string) {
		t.Helper()
		answer := must.Get(http.Get(url + path))(t)
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	if status, text := get("/hello"); status != 200 || text != "one" {
		t.Errorf("%d %q", status, text)
	}
	sees(`GET "/hello" \x1b\[32m200\x1b\[0m`)
	get("/missing")
	sees(`GET "/missing" \x1b\[31m404\x1b\[0m`)
	if status, text := get(demo.Broken); status != 500 || !strings.Contains(text, "index out of range") {
		t.Errorf("%d %q", status, text)
	}
	sees(`(?s)panic: runtime error: index out of range.*goroutine 1.*demo\.inCart.*\.go:\d+.*GET "/broken" \x1b\[31m500`)
	write("another")
	sees(`page.html has changed\x1b\[0m, 7 bytes`)
	if _, text := get("/"); text != "another" {
		t.Errorf("after the change: %q", text)
	}
	cancel()
	check.OK(t, <-ended)
}
