package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestPagesAndTheirLog(t *testing.T) {
	var log strings.Builder // handlers here run one after the other
	server := httptest.NewServer(logged(&log, http.HandlerFunc(page)))
	defer server.Close()

	var out strings.Builder
	if err := run([]string{"get", server.URL + "/hello"}, &out); err != nil || !strings.Contains(out.String(), `"/hello"`) {
		t.Errorf("page: %q, %v", out.String(), err)
	}
	if err := run([]string{"get", server.URL + "/missing"}, &out); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("missing page: %v, want 404", err)
	}
	server.Close()
	for _, want := range []string{`GET "/hello" \x1b\[32m200\x1b\[0m`, `GET "/missing" \x1b\[31m404\x1b\[0m`} {
		if !regexp.MustCompile(want).MatchString(log.String()) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"serve", "x"}, {"get"}, {"nonsense"}} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
