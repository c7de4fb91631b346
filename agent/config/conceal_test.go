package config_test

import (
	"strings"
	"testing"

	"tether/agent/config"
	"tether/internal/testkit/must"
)

func TestConceal(t *testing.T) {
	c := must.Get(config.Parse("f", []byte(`
[daemon]
log_level = "debug"
[terminals]
max_running = 7
[local]
listen = "127.0.0.1:4444"
[policy]
hide_env = ["CANARY_A"]
[[policy.rules]]
name = "canary-b"
effect = "deny"
argv = ["canary-c", "x"]
[[terminal]]
name = "canary-d"
line = "curl -H canary-e"
cwd = "~/canary-f"
env = ["TOKEN=canary-g", "A=1"]
restart = "always"
`)))(t)
	c.Conceal("…")
	var b strings.Builder
	must.Get(c.WriteTo(&b))(t)
	text := b.String()
	for _, secret := range []string{"canary", "CANARY", "4444", "TOKEN=", "A=1"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is still there:\n%s", secret, text)
		}
	}
	for _, line := range []string{`log_level = "debug"`, "max_running = 7", `restart = "always"`, `env = ["…", "…"]`, `line = "…"`, `effect = "deny"`, "CLAUDECODE"} {
		if strings.Contains(text, line) == (line == "CLAUDECODE") {
			t.Errorf("%s in\n%s", line, text)
		}
	}
	d := config.Default()
	d.Conceal("…")
	b.Reset()
	if _, err := d.WriteTo(&b); err != nil || strings.Contains(b.String(), "…") {
		t.Errorf("what is as by default is concealed: %v\n%s", err, b.String())
	}
}
