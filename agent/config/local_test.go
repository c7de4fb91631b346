package config_test

import (
	"testing"

	"tether/agent/config"
)

func TestLocal(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`listen = "127.0.0.1:0"`, ""},
		{`listen = "localhost:38765"`, ""},
		{`listen = "[::1]:65535"`, ""},
		{`listen = ""`, ""},
		{`listen = "0.0.0.0:0"`, `f:2: local.listen: "0.0.0.0:0" is not this machine alone: use 127.0.0.1, [::1] or localhost`},
		{`listen = ":8080"`, `f:2: local.listen: ":8080" is not this machine alone: use 127.0.0.1, [::1] or localhost`},
		{`listen = "127.1.2.3:8080"`, `f:2: local.listen: "127.1.2.3:8080" is not this machine alone: use 127.0.0.1, [::1] or localhost`},
		{`listen = "example.org:8080"`, `f:2: local.listen: "example.org:8080" is not this machine alone: use 127.0.0.1, [::1] or localhost`},
		{`listen = "127.0.0.1"`, `f:2: local.listen: "127.0.0.1" is no address and port, such as "127.0.0.1:0"`},
		{`listen = "127.0.0.1:http"`, `f:2: local.listen: port "http" must be 0 to 65535, where 0 is any that is free`},
		{`listen = "127.0.0.1:65536"`, `f:2: local.listen: port "65536" must be 0 to 65535, where 0 is any that is free`},
		{`listen = "127.0.0.1:80"`, `f:2: local.listen: port 80 is the system's: use 0 or one from 1024 on`},

		{`origins = ["https://ui.example", "http://localhost:5173", "http://[::1]:3000", "tauri://localhost"]`, ""},
		{`origins = ["*"]`, `f:2: local.origins: "*" would let every page in: list each origin`},
		{`origins = ["null"]`, `f:2: local.origins: "null" would let every page in: list each origin`},
		{`origins = ["https://*.example"]`, `f:2: local.origins: "https://*.example" has a wildcard: list each origin`},
		{`origins = ["https://ui.example/"]`, noOrigin("https://ui.example/")},
		{`origins = ["https://ui.example/app"]`, noOrigin("https://ui.example/app")},
		{`origins = ["https://ui.example?"]`, noOrigin("https://ui.example?")},
		{`origins = ["https://u@ui.example"]`, noOrigin("https://u@ui.example")},
		{`origins = ["ui.example"]`, noOrigin("ui.example")},
		{`origins = [""]`, noOrigin("")},
		{`origins = ["https://UI.example"]`, `f:2: local.origins: "https://UI.example" is never sent: browsers write origins in lower case`},
		{`origins = ["https://ui.example:443"]`, `f:2: local.origins: "https://ui.example:443" is never sent: browsers leave the usual port out`},
	} {
		_, err := config.Parse("f", []byte("[local]\n"+c.line+"\n"))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s\ngave %s\nwant %s", c.line, got, c.want)
		}
	}
}

func noOrigin(o string) string {
	return `f:2: local.origins: "` + o + `" is no origin: want a scheme, a host and perhaps a port, such as "https://ui.example" or "http://localhost:5173"`
}
