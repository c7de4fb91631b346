package problems_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/problems"
)

// What servers print when another program has their port, as their present versions do.
func TestTakenPorts(t *testing.T) {
	for name, c := range map[string]struct{ output, command, want string }{
		"node": {"node:events:497\n      throw er; // Unhandled 'error' event\n      ^\n\nError: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1817:16)\n    at Object.<anonymous> (/home/me/app/server.js:3:4)\nEmitted 'error' event on Server instance at:\n    at emitErrorNT (node:net:1796:8) {\n  code: 'EADDRINUSE',\n  errno: -98,\n  syscall: 'listen',\n  address: '::',\n  port: 3000\n}\n\nNode.js v20.11.0\n",
			"node server.js", "error [3000]"},
		"vite, strict":    {"error when starting dev server:\nError: Port 5173 is already in use\n    at Server.onError (file:///home/me/app/node_modules/vite/dist/node/chunks/dep.js:1:2)\n", "vite --strictPort", "error [5173]"},
		"vite":            {"Port 5173 is in use, trying another one...\n\n  VITE v7.0.0  ready in 300 ms\n", "vite", "warning [5173]"},
		"next":            {" \x1b[31m\x1b[1m⨯\x1b[22m\x1b[39m Failed to start server\nError: listen EADDRINUSE: address already in use :::3000\n    at <unknown> (Error: listen EADDRINUSE: address already in use :::3000)\n    at new Promise (<anonymous>) {\n  code: 'EADDRINUSE',\n", "next dev -p 3000", "error [3000]"},
		"next, another":   {" ⚠ Port 3000 is in use by process 4711, using available port 3001 instead.\n", "next dev", "warning [3000]"},
		"webpack":         {"<e> [webpack-dev-server] Error: listen EADDRINUSE: address already in use 127.0.0.1:8080\n", "webpack serve", "error [8080]"},
		"react-scripts":   {"Something is already running on port 3000.\n", "react-scripts start", "error [3000]"},
		"angular":         {"An unhandled exception occurred: Port 4200 is already in use.\n", "ng serve", "error [4200]"},
		"bun":             {"error: Failed to start server. Is port 3000 in use?\n syscall: \"listen\",\n   errno: 0,\n    code: \"EADDRINUSE\"\n", "bun run x.ts", "error [3000]"},
		"deno":            {"error: Uncaught (in promise) AddrInUse: Address already in use (os error 98)\n    at listen (ext:deno_net/01_net.js:605:35)\n", "deno serve --port 8000 x.ts", "error [8000]"},
		"python":          {"Traceback (most recent call last):\n  File \"/usr/lib/python3.11/runpy.py\", line 198, in _run_module_as_main\n    return _run_code(code)\n  File \"/usr/lib/python3.11/socketserver.py\", line 472, in server_bind\n    self.socket.bind(self.server_address)\nOSError: [Errno 98] Address already in use\n", "python3 -m http.server 8000", "error [8000]"},
		"python, a file":  {"Traceback (most recent call last):\n  File \"/home/me/app/x.py\", line 4, in <module>\n    s.bind(('', 8000))\nOSError: [Errno 98] Address already in use\n", "python3 x.py", "error []"},
		"flask":           {"Address already in use\nPort 5000 is in use by another program. Either identify and stop that program, or start the server with a different port.\n", "flask run", "error [5000]"},
		"django":          {"Error: That port is already in use.\n", "python manage.py runserver 8001", "error [8001]"},
		"uvicorn":         {"ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use\n", "uvicorn app:app", "error [8000]"},
		"gunicorn":        {"[2026-11-28 23:00:01 +0000] [12] [ERROR] Connection in use: ('127.0.0.1', 8000)\n", "gunicorn app", "error [8000]"},
		"go":              {"2026/11/28 23:12:41 listen tcp :8080: bind: address already in use\nexit status 1\n", "go run .", "error [8080]"},
		"go, an address":  {"panic: listen tcp4 0.0.0.0:8080: bind: address already in use\n", "./app", "error [8080]"},
		"go on Windows":   {"listen tcp [::1]:8080: bind: Only one usage of each socket address (protocol/network address/port) is normally permitted.\n", "app", "error [8080]"},
		"puma":            {"/usr/lib/ruby/gems/puma/lib/puma/binder.rb:341:in `initialize': Address already in use - bind(2) for \"127.0.0.1\" port 3000 (Errno::EADDRINUSE)\n", "rails server", "error [3000]"},
		"java":            {"Exception in thread \"main\" java.net.BindException: Address already in use\n\tat java.base/sun.nio.ch.Net.bind0(Native Method)\n\tat app.Main.main(Main.java:7)\n", "java -jar app.jar --server.port=8081", "error [8081]"},
		"spring":          {"Description:\n\nWeb server failed to start. Port 8080 was already in use.\n", "mvn spring-boot:run", "error [8080]"},
		"rust":            {"thread 'main' panicked at src/main.rs:5:50:\ncalled `Result::unwrap()` on an `Err` value: Os { code: 98, kind: AddrInUse, message: \"Address already in use\" }\n", "cargo run -- 7878", "error [7878]"},
		"rust, an error":  {"Error: Os { code: 98, kind: AddrInUse, message: \"Address already in use\" }\n", "target/debug/app", "error []"},
		"nginx":           {"nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)\n", "nginx", "error [80]"},
		"docker":          {"docker: Error response from daemon: driver failed programming external connectivity on endpoint x (0123): Bind for 0.0.0.0:8080 failed: port is already allocated.\n", "docker run -p 8080:80 nginx", "error [8080]"},
		"docker, its own": {"Error response from daemon: failed to set up container networking: failed to bind host port for 0.0.0.0:8080:172.17.0.2:80/tcp: address already in use\n", "docker compose up", "error [8080]"},
		"php":             {"[Sat Nov 28 23:00:00 2026] Failed to listen on localhost:8000 (reason: Address already in use)\n", "php -S localhost:8000", "error [8000]"},
		"dotnet":          {"Unhandled exception. System.IO.IOException: Failed to bind to address http://127.0.0.1:5000: address already in use.\n", "dotnet run", "error [5000]"},
		"postgres":        {"2026-11-28 23:00:00.123 UTC [7] LOG:  could not bind IPv4 address \"127.0.0.1\": Address already in use\n2026-11-28 23:00:00.123 UTC [7] HINT:  Is another postmaster already running on port 5432? If not, wait a few seconds and retry.\n", "postgres", "error [] error [5432]"},
		"redis":           {"8:M 28 Nov 2026 23:00:00.000 # Warning: Could not create server TCP listening socket *:6379: bind: Address already in use\n", "redis-server", "error [6379]"},
		"phoenix":         {"[error] Running AppWeb.Endpoint with Bandit 1.5.7 at http failed, port 4000 already in use\n", "mix phx.server", "error [4000]"},
		"a test's place":  {"--- FAIL: TestX (0.00s)\n    x_test.go:12: listen tcp :8080: bind: address already in use\n", "go test ./...", "error [8080]"},

		"a listening server": {"  Local: http://localhost:3000/\nport 3000 is open\nused 3000 ports\n", "x", ""},
		"a typed command":    {"$ grep -rn 'address already in use' .\n", "sh", ""},
		"source":             {"+  if (err.code === 'EADDRINUSE') {\n// the address already in use\n", "git diff", ""},
	} {
		tr := problems.NewTracker(problems.Builtin(), 0)
		tr.Begin(c.command, "/home/me/app")
		tr.Write(0, []byte(strings.ReplaceAll(c.output, "\n", "\r\n")))
		tr.End()
		var got []string
		for _, p := range tr.Problems(0) {
			if ports, yes := p.TakenPorts(); yes {
				got = append(got, fmt.Sprintf("%s %v", p.Severity, ports))
			} else {
				got = append(got, "other: "+p.Message)
			}
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
