package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/internal/testkit/must"
)

// from is a setting of the environment or, with a name that begins with a dash, of the
// command line.
func from(key, value string) config.Setting {
	if name, ok := strings.CutPrefix(key, "--"); ok {
		return config.Setting{Key: name, Value: value, Source: config.FromFlag}
	}
	return config.Setting{Key: key, Value: value, Source: config.FromEnvironment}
}

// file writes a configuration file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPrecedence(t *testing.T) {
	path := file(t, "[terminals]\nmax_running = 10\nkeep_exited = 10\n[lend]\nnotice = false\n[[policy.rules]]\nname = \"x\"\neffect = \"deny\"\n")
	over := []config.Setting{from("terminals.max_running", "20"), from("lend.notice", "1"), from("--terminals.max_running", "30"), from("--uplink.heartbeat", "9s")}
	c, err := config.Load(path, over...)
	if err != nil || c.Terminals.MaxRunning != 30 || c.Terminals.KeepExited != 10 || !c.Lend.Notice || c.Uplink.Heartbeat.String() != "9s" {
		t.Fatalf("%+v, %v", c, err)
	}
	origins, err := config.Origins(path, over...)
	want := map[string]config.Source{
		"terminals.max_running": config.FromFlag, "terminals.keep_exited": config.FromFile, "lend.notice": config.FromEnvironment,
		"uplink.heartbeat": config.FromFlag, "policy.rules": config.FromFile,
	}
	if diff := cmp.Diff(want, origins); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	var b strings.Builder
	must.Do(t, c.WriteFrom(&b, origins))
	for _, line := range []string{"max_running = 30  # flag", "keep_exited = 10  # file", "notice = true  # environment", `on_slow_user = "lag"  # default`, "[[policy.rules]]  # file", `name = "x"`} {
		if !strings.Contains(b.String(), "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, b.String())
		}
	}
	again, err := config.Parse("written", []byte(b.String()))
	if diff := cmp.Diff(c, again); err != nil || diff != "" {
		t.Errorf("what was written is read to %v:\n%s", err, diff)
	}
}

// A key that is set to the value with which it is written has that value. A variable with
// a key's old name is refused with the form that sets it now.
func TestEveryKeyIsSettable(t *testing.T) {
	var set []config.Setting
	for _, k := range config.Keys() {
		name := "TETHER_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
		value := strings.Trim(k.Value, `"`)
		if !k.Settable() {
			continue
		}
		set = append(set, from("--"+k.Name, value))
		read, strange, wrong := config.FromEnv([]string{name + "=" + value, "HOME=/", "TETHER_HOME=/x"}, "TETHER_HOME")
		switch {
		case len(strange) > 0, value == "" && len(read)+len(wrong) > 0, value != "" && len(read)+len(wrong) != 1:
			t.Errorf("%s: %v, %v, %v", name, read, strange, wrong)
		case len(read) == 1 && (k.Variable() != name || read[0].Key != k.Name):
			t.Errorf("%s is read as %+v", name, read)
		case len(wrong) == 1 && (k.Variable() != "" || !strings.Contains(wrong[0].Text, "--set "+k.Name+"=")):
			t.Errorf("%s: %s", name, wrong[0].Text)
		}
	}
	got, err := config.Load("/nothing/here", set...)
	if diff := cmp.Diff(config.Default(), got); err != nil || diff != "" || len(set) < 40 {
		t.Errorf("%d set: %v\n%s", len(set), err, diff)
	}
}

func TestValuesFromOutside(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"local.origins", "http://localhost:1", `["http://localhost:1"]`},
		{"local.origins", `["http://localhost:1", "http://localhost:2"]`, `["http://localhost:1", "http://localhost:2"]`},
		{"lend.redact_patterns", "a,b", `["a,b"]`},
		{"--lend.redact_patterns", "", `[]`},
		{"lend.as_root", "1", "true"},
		{"lend.notice", "false", "false"},
		{"lend.default", "no", `"no"`},
		{"terminals.log_bytes", "1.5MiB", `"1536KiB"`},
		{"terminals.max_running", "7", "7"},

		{"lend.notice", "perhaps", `TETHER_LEND_NOTICE: "perhaps" is not a bool: true or false (whether to print a line that says who can watch a terminal)`},
		{"terminals.max_running", "many", `TETHER_TERMINALS_MAX_RUNNING: "many" is not an integer: 1 to 10000 (the maximum number of running terminals)`},
		{"--terminals.max_running", "0", "--set terminals.max_running: 0 is out of range: 1 to 10000 (the maximum number of running terminals)"},
		{"terminals.log_bytes", "4096", `TETHER_TERMINALS_LOG_BYTES: "4096" is not a size: want a number and a unit, such as "64KiB", "4MiB" or "1GiB" (the amount of output kept per terminal, rounded up to a power of two)`},
		{"lend.default", "maybe", `TETHER_LEND_DEFAULT: "maybe" must be one of yes, no (whether terminals that no rule matches are shared)`},
		{"local.origins", "[1]", "TETHER_LOCAL_ORIGINS: 1 is not a string (the web origins that may use the local HTTP API, with a token)"},
		{"local.origins", "[\"x\"]\nlisten = 1", `TETHER_LOCAL_ORIGINS: "[\"x\"]\nlisten = 1" is not a list of strings (the web origins that may use the local HTTP API, with a token)`},
		{"local.listen", "0.0.0.0:1", `TETHER_LOCAL_LISTEN: "0.0.0.0:1" port`},
		{"terminals.log_bytes", "1GiB", "TETHER_TERMINALS_LOG_BYTES: it is more than terminals.total_log_bytes, which is 256MiB"},
		{"--policy.rules", "[]", "--set policy.rules: only the file can have it"},
		{"--policy.acp.code", "deny", `--set policy.acp.code: there is no such key any more; use --set 'policy.builtin.acp=["commands=ask", "patterns=ask", "substitution=allow", "script=allow", "interactive=allow", "code=deny"]'`},
		{"policy.builtin.acp", "unparsed=allow", `TETHER_POLICY_BUILTIN_ACP: "allow" must be one of ask, deny (the decision for commands that cannot be parsed)`},
		{"policy.builtin.acp", "acp=deny", `TETHER_POLICY_BUILTIN_ACP: "acp=deny": want a rule and its effect, as in "commands=ask"`},
		{"policy.builtin.acp", "destructive=deny", `["destructive=deny"]`},
		{"--lend.default.more", "x", "--set lend.default.more: there is no such key; did you mean lend.default?"},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			got, err := config.Load("/nothing/here", from(c.key, c.value))
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				for _, k := range got.Keys() {
					if k.Name == strings.TrimPrefix(c.key, "--") {
						text = k.Value
					}
				}
			}
			if text != c.want && c.key != "local.listen" || err == nil && c.key == "local.listen" {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestVariablesThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, wrong, strange string }{
		{"TETHER_TERMINAL_LOG_BYTES", "--set terminals.log_bytes=x, or the file", ""},
		{"TETHER_LEND_DEFUALT", "--set lend.default=x, or the file", ""},
		{"TETHER_POLICY_SOMETHING_ELSE_ALTOGETHER", "tether config keys lists the keys", ""},
		{"TETHER_LEND_RULES", "--set lend.", ""}, // of tables: only the file has it
		{"TETHER_HOLDERS", "TETHER_HOLDERS: terminals always have a holder now", ""},
		{"TETHER_POLICY_ACP_DESTRUCTIVE", `"interactive=allow", "destructive=x"]', or the file`, ""},
		{"TETHER_WEATHER", "", "TETHER_WEATHER"},
		{"TETHER_TERMINAL", "", "TETHER_TERMINAL"}, // unless it is known
		{"TETHERED_LEND_DEFAULT", "", ""},
	} {
		set, strange, wrong := config.FromEnv([]string{c.name + "=x"})
		text := ""
		if len(wrong) == 1 {
			text = (&config.Error{Path: "f", Problems: wrong}).Error()
		}
		if len(set) > 0 || strings.Join(strange, " ") != c.strange || !strings.Contains(text, c.wrong) || (c.wrong == "") != (text == "") ||
			text != "" && !strings.HasPrefix(text, c.name+": ") {
			t.Errorf("%s: set %v, strange %v, wrong %s", c.name, set, strange, text)
		}
	}
	if set, strange, wrong := config.FromEnv([]string{"TETHER_LEND_DEFAULT=", "TETHER_LEND_DEFAUL=", "TETHER_X="}); len(set)+len(strange)+len(wrong) > 0 {
		t.Errorf("empty variables: %v, %v, %v", set, strange, wrong)
	}
}

// An outside value sets its own key and never another, or is refused in printable lines.
func FuzzSetting(f *testing.F) {
	for _, s := range []string{"", "1", "true", "64KiB", "5s", "no", `["a", 'b']`, "[1]\nx=2", "[", "[[]]", "[{a = 1}]", "\x00\x1b"} {
		f.Add(s)
	}
	var keys []string
	for _, k := range config.Keys() {
		if k.Settable() {
			keys = append(keys, k.Name)
		}
	}
	before := config.Keys()
	f.Fuzz(func(t *testing.T, value string) {
		for _, key := range keys {
			c, err := config.Load("/nothing/here", from(key, value))
			if err != nil {
				if text := err.Error(); !strings.HasPrefix(text, "TETHER_") || strings.ContainsAny(text, "\x1b\x00\r") {
					t.Errorf("%s=%q: %q", key, value, text)
				}
				continue
			}
			for i, k := range c.Keys() {
				if k.Name != key && k.Value != before[i].Value {
					t.Errorf("%s=%q has set %s to %s", key, value, k.Name, k.Value)
				}
			}
		}
	})
}

func TestDistance(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1},
		{"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {long, long + "y", 0},
	} {
		if got := config.Distance(c.a, c.b); got != c.want {
			t.Errorf("%.10q to %.10q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"log_bytes", "total_log_bytes", "keep_for", "heartbeat"}
	for s, want := range map[string]string{
		"log_byte": "log_bytes", "logbytes": "log_bytes", "log-bytes": "log_bytes", "hartbeat": "heartbeat",
		"keep": "", "": "", "zzz": "", "LOG_BYTES": "",
	} {
		if got := config.Nearest(s, words); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
