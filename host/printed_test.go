package host_test

import (
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
)

// The page lists the URL that a server has printed: as vite does it with a bold port, for
// all addresses, without a path. It does not list other machines' URLs, nor one that may
// not be complete, nor that of an earlier command, or of a program that has ended.
func TestPageListsPrintedURLs(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "observer-o")})
	v := dial(t, url+"?tkn=machine-a", "laptop", viewOptions{})
	v.create(uri)
	lists := func(want string) {
		t.Helper()
		testkit.Eventually(t, testkit.Patience, "the list has "+want, func() bool {
			_, page := ask(t, url, visit{path: "/plain", token: "observer-o"})
			_, text, _ := strings.Cut(page, "<small>")
			if want == "" {
				return text != "" && !strings.HasPrefix(text, "http")
			}
			return strings.HasPrefix(text, want+" · ")
		})
	}
	v.dispatch(uri, ahp.TerminalOutput{Data: "listening at https://example.com:443/ and http://localhost:51"})
	v.ping()
	lists("")
	v.dispatch(uri, ahp.TerminalOutput{Data: "\r\n  Local: \x1b[36mhttp://localhost:\x1b[1m5173\x1b[22m/app/\x1b[39m\r\n"})
	lists("http://localhost:5173/app/")
	v.dispatch(uri, ahp.TerminalOutput{Data: "proxy to http://127.0.0.1:4000\r\n"})
	v.ping()
	lists("http://localhost:5173/app/")
	v.dispatch(uri, ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: "python3 -m http.server"})
	v.ping()
	lists("")
	v.dispatch(uri, ahp.TerminalOutput{Data: "Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...\r\n"})
	lists("http://localhost:8000/")
	code := int64(0)
	v.dispatch(uri, ahp.TerminalExited{ExitCode: &code})
	v.ping()
	lists("")
}
