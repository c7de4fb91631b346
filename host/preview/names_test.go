package preview_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tether/host/preview"
	"tether/internal/testkit/must"
)

func TestDomainBesideThePage(t *testing.T) {
	for _, c := range []struct{ domain, page, why string }{
		{"preview.example", "https://host.example.com", ""},
		{"Preview.Example:8443", "https://host.example.com:8443", ""},
		{"preview.example.com", "https://host.example.com", ""},
		{"localhost:9187", "http://localhost:9187", ""},
		{"localhost", "http://127.0.0.1:9187", ""},
		{"localhost", "http://[::1]:9187", ""},
		{"preview.example", "https://preview.example", "own name"},
		{"PREVIEW.example", "https://Preview.EXAMPLE.", "own name"},
		{"example.com", "https://host.example.com", "above"},
		{"previews.host.example.com", "https://host.example.com", "below"},
		{"localhost", "https://host.example.com", "own machine"},
		{"preview.localhost", "http://localhost:9187", "own machine"},
		{"preview.example", "http://host.example.com", "need https"},
		{"preview.example", "http://localhost:9187", "need https"},
		{"com", "https://host.example.org", "no name above"},
		{"127.0.0.1", "https://host.example.com", "an address"},
		{"10.0.0.1:443", "https://host.example.com", "an address"},
		{"[::1]:443", "https://host.example.com", "an address"},
		{"", "https://host.example.com", "not a name"},
		{"*.preview.example", "https://host.example.com", "without *"},
		{".preview.example", "https://host.example.com", "not a name"},
		{"preview.example.", "https://host.example.com", "a dot at its end"},
		{"https://preview.example", "https://host.example.com", "no port"},
		{"preview.example/x", "https://host.example.com", "not a name"},
		{"preview_x.example", "https://host.example.com", "not a name"},
		{"-a.example", "https://host.example.com", "not a name"},
		{"preview.example:0", "https://host.example.com", "no port"},
		{"preview.example:65536", "https://host.example.com", "no port"},
		{"preview.example:+80", "https://host.example.com", "no port"},
		{"preview.example:", "https://host.example.com", "no port"},
		{strings.Repeat("a", 64) + ".example", "https://host.example.com", "not a name"},
		{strings.Repeat("a.", 120) + "example", "https://host.example.com", "too long"},
	} {
		err := preview.CheckDomain(c.domain, must.Get(url.Parse(c.page))(t))
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s beside %s: %v, want %q", c.domain, c.page, err, c.why)
		}
	}
}

// Each lending has a name of its own, the same at all nodes with the same key.
func TestLabels(t *testing.T) {
	node := func(key byte) *preview.Previews {
		return must.Get(preview.New(preview.Options{Domain: "preview.example", Secure: true, Key: [32]byte{key}}))(t)
	}
	p := node(1)
	label := p.Label(3000, "laptop", "t1", "1000")
	if preview.PortOf(label) != 3000 || len(label) != len("3000-")+26 || p.URL(label) != "https://"+label+".preview.example" || label != node(1).Label(3000, "laptop", "t1", "1000") {
		t.Errorf("the label is %s", label)
	}
	for what, other := range map[string]string{
		"another key": node(2).Label(3000, "laptop", "t1", "1000"), "another time": p.Label(3000, "laptop", "t1", "1001"), "another port": p.Label(3001, "laptop", "t1", "1000"),
		"other borders": p.Label(3000, "laptopt", "1", "1000"), "another machine": p.Label(3000, "desk", "t1", "1000"),
	} {
		if _, random, _ := strings.Cut(label, "-"); strings.HasSuffix(other, random) {
			t.Errorf("%s has the same name %s", what, other)
		}
	}
	for _, wrong := range []string{"", "3000", "3000-", "03000-" + label[5:], "0-" + label[5:], "65536-" + label[5:], label + "a", label[:len(label)-1], strings.ToUpper(label), "+300-" + label[5:], "3000-" + label[6:] + "_"} {
		if preview.PortOf(wrong) != 0 {
			t.Errorf("%q is a label", wrong)
		}
	}
}

// A name below the domain, however it is written, never reaches the page, nor another
// preview.
func TestNamesInRequests(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("the dev server")) })
	cookie, port := s.enter("v1"), ":"+s.port()
	other := s.previews.Label(3000, "laptop", "other")
	for host, want := range map[string]int{
		s.label + ".localhost" + port: http.StatusOK, strings.ToUpper(s.label) + ".LocalHost" + port: http.StatusOK,
		s.label + ".localhost." + port: http.StatusMisdirectedRequest, s.label + ".localhost": http.StatusMisdirectedRequest, s.label + ".localhost:1": http.StatusMisdirectedRequest,
		"x." + s.label + ".localhost" + port: http.StatusMisdirectedRequest, s.label + ".x.localhost" + port: http.StatusMisdirectedRequest,
		"_" + s.label + ".localhost" + port: http.StatusMisdirectedRequest, strings.Replace(s.label, "-", "_", 1) + ".localhost" + port: http.StatusMisdirectedRequest,
		".localhost" + port: http.StatusMisdirectedRequest, "..localhost" + port: http.StatusMisdirectedRequest, "www.localhost" + port: http.StatusMisdirectedRequest,
		other + ".localhost" + port: http.StatusForbidden, // its cookie is another one
		"localhost" + port:          http.StatusTeapot, s.label + "localhost" + port: http.StatusTeapot, s.label + ".localhost.evil.example" + port: http.StatusTeapot,
		"localhost" + port + "." + s.label: http.StatusTeapot,
	} {
		status, body := s.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nSec-Fetch-Site: none\r\nCookie: " + cookie + "\r\nConnection: close\r\n\r\n")
		if status != want && (want != http.StatusTeapot || status != http.StatusBadRequest) { // Go's server refuses some itself
			t.Errorf("%s: %d %s, want %d", host, status, body, want)
		}
	}
}
