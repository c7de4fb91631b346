package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
)

func TestParse(t *testing.T) {
	text := `
# bounds
[terminals]
log_bytes = "1.5MiB"
keep_for = "90s"
on_slow_user = 'hold'
max_running = 10

[uplink]
heartbeat = "5s"
`
	want := config.Default()
	want.Terminals.LogBytes = 3 << 19
	want.Terminals.KeepFor = config.Duration(90 * time.Second)
	want.Terminals.OnSlowUser = "hold"
	want.Terminals.MaxRunning = 10
	want.Uplink.Heartbeat = config.Duration(5 * time.Second)
	got := must.Get(config.Parse("x", []byte(text)))(t)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Editors of Windows begin UTF-8 with a byte order mark.
func TestByteOrderMark(t *testing.T) {
	got, err := config.Parse("x", []byte("\xef\xbb\xbf[uplink]\r\nheartbeat = \"5s\"\r\n"))
	if err != nil || got.Uplink.Heartbeat != config.Duration(5*time.Second) {
		t.Errorf("heartbeat %v, %v", got.Uplink.Heartbeat, err)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"after a byte order mark", "\xef\xbb\xbf[terminals]\r\n\r\nlog_byte = 1", "f:3: terminals.log_byte: there is no such key; did you mean terminals.log_bytes?"},
		{"UTF-16", "\xff\xfe[\x00", "f: the file is UTF-16: save it as UTF-8"},
		{"misspelt key", "[terminals]\n\nlog_byte = \"4MiB\"", "f:3: terminals.log_byte: there is no such key; did you mean terminals.log_bytes?"},
		{"swapped letters", "[terminals]\nkeep_fro = \"1h\"", "f:2: terminals.keep_fro: there is no such key; did you mean terminals.keep_for?"},
		{"key of another section", "[uplink]\nstall_time = \"1s\"", "f:2: uplink.stall_time: there is no such key; did you mean terminals.stall_time?"},
		{"former section", "[policy.acp]\ncode = \"deny\"\nfiles = \"allow\"", `f:1: policy.acp: there is no such section any more; use policy.builtin.acp=["commands=ask", "patterns=ask", "substitution=allow", "script=allow", "interactive=allow", "code=deny", "files=allow"]`},
		{"exception of no rule", "[policy.builtin]\nacp = [\"cod=deny\"]", `f:2: policy.builtin.acp: "cod=deny": want a rule and its effect, as in "commands=ask"`},
		{"key without section", "heartbeat = \"1s\"", "f:1: heartbeat: there is no such section; did you mean uplink.heartbeat?"},
		{"nothing near", "[uplink]\nqwertz = 1", "f:2: uplink.qwertz: there is no such key; there are heartbeat, client_tools"},
		{"misspelt section", "\n[termnals]\nlog_bytes = \"1MiB\"", "f:2: termnals: there is no such section; did you mean terminals?"},
		{"dotted", "terminals.log_byte = 1", "f:1: terminals.log_byte: there is no such key; did you mean terminals.log_bytes?"},
		{"inline", "terminals = {max_running = 1,\n log_byte = 1}", "f:2: terminals.log_byte: there is no such key; did you mean terminals.log_bytes?"},
		{"quoted key", "[uplink]\n\"a\\u001Bb\" = 1", "f:2: uplink.a?b: there is no such key; there are heartbeat, client_tools"},
		{"size as number", "[terminals]\nlog_bytes = 4096", `f:2: terminals.log_bytes: 4096 is not a size: write it as a string with a unit, such as "64MiB" (the amount of output kept per terminal, rounded up to a power of two)`},
		{"size without unit", "[terminals]\nlog_bytes = \"4096\"", `f:2: terminals.log_bytes: "4096" is not a size: want a number and a unit, such as "64KiB", "4MiB" or "1GiB" (the amount of output kept per terminal, rounded up to a power of two)`},
		{"size too small", "[terminals]\nlog_bytes = \"1KiB\"", "f:2: terminals.log_bytes: 1KiB is out of range: 64KiB to 1GiB (the amount of output kept per terminal, rounded up to a power of two)"},
		{"duration as number", "[uplink]\nheartbeat = 15", `f:2: uplink.heartbeat: 15 is not a duration: write it as a string with a unit, such as "30s" (the interval between pings to a host)`},
		{"duration without unit", "[uplink]\nheartbeat = \"15\"", `f:2: uplink.heartbeat: "15" is not a duration: want a number and a unit, such as "500ms", "30s", "1h30m" or "7d" (the interval between pings to a host)`},
		{"negative duration", "[uplink]\nheartbeat = \"-15s\"", `f:2: uplink.heartbeat: "-15s" is not a duration: want a number and a unit, such as "500ms", "30s", "1h30m" or "7d" (the interval between pings to a host)`},
		{"duration too long", "[uplink]\nheartbeat = \"1h\"", "f:2: uplink.heartbeat: 1h is out of range: 1s to 5m (the interval between pings to a host)"},
		{"number too large", "[terminals]\nmax_running = 10001", "f:2: terminals.max_running: 10001 is out of range: 1 to 10000 (the maximum number of running terminals)"},
		{"number as text", "[terminals]\nmax_running = \"10\"", `f:2: terminals.max_running: "10" is not an integer: 1 to 10000 (the maximum number of running terminals)`},
		{"number as float", "[terminals]\nmax_running = 1.5", `f:2: terminals.max_running: 1.5 is not an integer: 1 to 10000 (the maximum number of running terminals)`},
		{"wrong word", "[terminals]\non_slow_user = \"stop\"", `f:2: terminals.on_slow_user: "stop" must be one of lag, hold (how a slow reader affects your terminals)`},
		{"word as bool", "[terminals]\non_slow_user = true", `f:2: terminals.on_slow_user: true is not a string: lag, hold (how a slow reader affects your terminals)`},
		{"table for a value", "[terminals.log_bytes]\n", `f:1: terminals.log_bytes: a table is not a size: write it as a string with a unit, such as "64MiB" (the amount of output kept per terminal, rounded up to a power of two)`},
		{"value for a table", "terminals = 3", `f:1: terminals: 3 is not a table`},
		{"list of tables for a table", "[[terminals]]\nlog_bytes = \"4MiB\"", `f:1: terminals: a list is not a table`},
		{"escape sequences", "[terminals]\non_slow_user = \"\\u001B[2J\"", `f:2: terminals.on_slow_user: "\x1b[2J" must be one of lag, hold (how a slow reader affects your terminals)`},
		{"relation", "[terminals]\ntotal_log_bytes = \"20MiB\"\nlog_bytes = \"32MiB\"",
			"f:3: terminals.log_bytes: it is more than terminals.total_log_bytes, which is 20MiB"},
		{"relation with a default", "[terminals]\n\nmax_running = 10000",
			"f:1: terminals.total_log_bytes: each of max_running and keep_exited terminals needs 64KiB: at least 643200KiB, or fewer terminals"},
		{"several", "[terminals]\nlog_bytes = 1\nmax_running = 0\n[upling]",
			"f:2: terminals.log_bytes: 1 is not a size: write it as a string with a unit, such as \"64MiB\" (the amount of output kept per terminal, rounded up to a power of two)\n" +
				"f:3: terminals.max_running: 0 is out of range: 1 to 10000 (the maximum number of running terminals)\n" +
				"f:4: upling: there is no such section; did you mean uplink?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.text))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\ngave  %v\nwant  %s", c.text, err, c.want)
			}
		})
	}
}

func TestSyntax(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no value", "[terminals]\nlog_bytes =\n", "f:2: column "},
		{"twice", "[uplink]\nheartbeat = \"1s\"\nheartbeat = \"2s\"\n", "f:3: column 1: not TOML: "},
		{"open string", "[uplink]\nheartbeat = \"1s", "f:2: column "},
		{"no UTF-8", "[uplink]\n# \xff", "f:2: column "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.text))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%q\ngave  %v\nwant  %s…", c.text, err, c.want)
			}
		})
	}
}

func TestTooManyProblems(t *testing.T) {
	text := "[uplink]\n"
	for i := range 100 {
		text += "x" + strings.Repeat("y", i) + " = 1\n"
	}
	_, err := config.Parse("f", []byte(text))
	e, ok := errors.AsType[*config.Error](err)
	if !ok || len(e.Problems) != 20 || e.Problems[0].Line != 2 || e.Problems[19].Line != 21 {
		t.Errorf("got %v", err)
	}
}

func TestLoad(t *testing.T) {
	path := config.Path(dirs.Dirs{Config: t.TempDir()})
	if filepath.Base(path) != "config.toml" {
		t.Fatal(path)
	}
	got, err := config.Load(path)
	if err != nil || !cmp.Equal(got, config.Default()) {
		t.Fatalf("no file: %+v, %v", got, err)
	}
	write := func(mode os.FileMode) {
		t.Helper()
		must.Do(t, errors.Join(os.WriteFile(path, []byte("[uplink]\nheartbeat = \"2s\"\n"), mode), os.Chmod(path, mode)))
	}
	write(0o644) // others may read it
	got, err = config.Load(path)
	if err != nil || got.Uplink.Heartbeat != config.Duration(2*time.Second) {
		t.Fatalf("%+v, %v", got, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err == nil {
		if _, err := config.Load(link); err != nil {
			t.Errorf("through a link: %v", err)
		}
	}
	write(0o666)
	if _, err = config.Load(path); filepath.Separator == '/' && (err == nil || !strings.Contains(err.Error(), "chmod go-w")) {
		t.Errorf("a file that anyone may change: %v", err)
	}
	if _, err = config.Load(filepath.Dir(path)); err == nil {
		t.Error("a directory was taken for a file")
	}
}

// Every key is described where people look, as the structs have it.
func TestDocumentIsComplete(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/CONFIG.md"))(t)
	var got, want []string
	row := regexp.MustCompile("^- `([^`]+)`: (.*) \\(([a-z ]+), `([^`]*)`(?:, ([^()`]+))?\\)$")
	section, meanings, plain := "", map[string]string{}, regexp.MustCompile("`|\\[([^\\]]*)\\]\\([^)]*\\)")
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## ["); ok {
			section = strings.Trim(name, "[]")
		}
		item := row.FindStringSubmatch(strings.TrimSpace(line))
		if item == nil {
			continue
		}
		name, says, kind, value, allowed := item[1], item[2], item[3], item[4], item[5]
		meanings[section+"."+name] = plain.ReplaceAllString(says, "$1")
		got = append(got, fmt.Sprintf("%s.%s | %s | `%s` | %s", section, name, kind, value, allowed))
	}
	for _, k := range config.Keys() {
		if !strings.Contains(k.Name, ".") {
			continue // a list of tables: its heading stands for it
		}
		if says := meanings[strings.ReplaceAll(k.Name, "[].", ".")]; k.Meaning == "" || len(k.Meaning) > 100 || !strings.HasPrefix(says, k.Meaning) {
			t.Errorf("%s: docs/CONFIG.md says %q, which must begin with %q of meanings.txt", k.Name, says, k.Meaning)
		}
		want = append(want, strings.ReplaceAll(k.Name, "[].", ".")+" | "+k.Kind+" | `"+k.Value+"` | "+k.Allowed)
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/CONFIG.md (+) and the structs (-) differ; an item is key, meaning, kind, default, allowed:\n%s", d)
	}
}
