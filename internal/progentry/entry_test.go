package progentry_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"tether/internal/progentry"
	"tether/internal/testkit/must"
)

var entry = progentry.Entry{Command: "/usr/bin/tether", Args: []string{"mcp", "--as", "claude"}}

var (
	plain = progentry.Format{Section: "mcpServers"}
	typed = progentry.Format{Section: "servers", Style: progentry.Typed}
	local = progentry.Format{Section: "mcp", Style: progentry.Local}
	codex = progentry.Format{Section: "mcp_servers", TOML: true}
)

// Adding an entry changes nothing else, and removing it restores the file byte for byte.
func TestAddAndRemove(t *testing.T) {
	for name, c := range map[string]struct {
		format       progentry.Format
		before, want string
	}{
		"a new file": {plain, "", "{\n  \"mcpServers\": {\n    \"tether\": {\n      \"command\": \"/usr/bin/tether\",\n      \"args\": [\"mcp\", \"--as\", \"claude\"]\n    }\n  }\n}\n"},
		"a file with comments": {plain, "// mine\n{\n    // first\n    \"a\": [1, 2,], /* two */\n    \"mcpServers\": {\n        \"x\": {\"command\": \"x\"}, // keep\n    },\n    \"z\": 1\n}\n",
			"// mine\n{\n    // first\n    \"a\": [1, 2,], /* two */\n    \"mcpServers\": {\n        \"x\": {\"command\": \"x\"}, // keep\n        \"tether\": {\n            \"command\": \"/usr/bin/tether\",\n            \"args\": [\"mcp\", \"--as\", \"claude\"]\n        },\n    },\n    \"z\": 1\n}\n"},
		"tabs and no section":  {typed, "{\n\t\"inputs\": []\n}", "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t\"tether\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/usr/bin/tether\",\n\t\t\t\"args\": [\"mcp\", \"--as\", \"claude\"]\n\t\t}\n\t}\n}"},
		"CR LF":                {local, "{\r\n  \"$schema\": \"x\"\r\n}\r\n", "{\r\n  \"$schema\": \"x\",\r\n  \"mcp\": {\r\n    \"tether\": {\r\n      \"type\": \"local\",\r\n      \"command\": [\"/usr/bin/tether\", \"mcp\", \"--as\", \"claude\"]\r\n    }\r\n  }\r\n}\r\n"},
		"a comment at the end": {plain, "{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"tether\": {\n      \"command\": \"/usr/bin/tether\",\n      \"args\": [\"mcp\", \"--as\", \"claude\"]\n    }\n  }\n}\n"},
		"TOML":                 {codex, "# mine\nmodel = \"o\" # fast\n\n[mcp_servers.x]\ncommand = \"x\"\n", "# mine\nmodel = \"o\" # fast\n\n[mcp_servers.x]\ncommand = \"x\"\n\n[mcp_servers.tether]\ncommand = \"/usr/bin/tether\"\nargs = [\"mcp\",\"--as\",\"claude\"]\n"},
		"a new file of TOML":   {codex, "", "[mcp_servers.tether]\ncommand = \"/usr/bin/tether\"\nargs = [\"mcp\",\"--as\",\"claude\"]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.format.Add([]byte(c.before), "tether", entry)
			if err != nil || string(got) != c.want {
				t.Fatalf("%v\ngot  %q\nwant %q", err, got, c.want)
			}
			if has, err := c.format.Has(got, "tether", "mcp"); !has || err != nil {
				t.Errorf("it is not found: %v", err)
			}
			if again, err := c.format.Add(got, "tether", entry); err != nil || string(again) != c.want {
				t.Errorf("added again: %q, %v", again, err)
			}
			back := must.Get(c.format.Remove(got, "tether", "tether", "mcp"))(t)
			if string(back) != c.before && !(c.before == "" && progentry.Empty(back)) && strings.ReplaceAll(string(back), "1,", "1") != c.before {
				t.Errorf("removed again: %q, want %q", back, c.before)
			}
		})
	}
}

// An entry on one line, or among several members, can be removed as well.
func TestRemove(t *testing.T) {
	const own = `"tether": {"command": "C:\\bin\\tether.exe", "args": ["mcp"]}`
	for before, want := range map[string]string{
		`{"mcpServers": {` + own + `}}`:                                                                      `{}`,
		`{"a": 1, "mcpServers": {"x": {}, ` + own + `}}`:                                                     `{"a": 1, "mcpServers": {"x": {}}}`,
		`{"mcpServers": {` + own + `, "x": {}}, "b": 2}`:                                                     `{"mcpServers": { "x": {}}, "b": 2}`,
		`{"mcpServers": {"tether": {"command": "other"}}}`:                                                   `{"mcpServers": {"tether": {"command": "other"}}}`,
		"{\"mcpServers\": {\"x\": {}, // keep\n " + own + "\n}}":                                             "{\"mcpServers\": {\"x\": {} // keep\n}}",
		"{\"mcpServers\": {\n // mine\n " + own + "\n}}":                                                     "{\"mcpServers\": {\n // mine\n}}",
		`{"mcpServers": {"tether": {"command": ["tether","mcp"]}}}`:                                          `{}`,
		`{"mcpServers": {"tether": {"transport": {"type": "stdio", "command": "tether", "args": ["mcp"]}}}}`: `{}`, // as Cline writes it
	} {
		got, err := plain.Remove([]byte(before), "tether", "tether", "mcp")
		if err != nil || string(got) != want {
			t.Errorf("of %s there is left %q, %v, want %q", before, got, err, want)
		}
	}
	const table = "[mcp_servers.tether]\ncommand = \"tether\"\nargs = [\"mcp\"]\n\n[mcp_servers.tether.env]\nA = \"b\"\n\n[other]\nx = 1 # one\n"
	if got, err := codex.Remove([]byte("# top\n\n"+table), "tether", "tether", "mcp"); err != nil || string(got) != "# top\n[other]\nx = 1 # one\n" {
		t.Errorf("of tables there is left %q, %v", got, err)
	}
}

// A text that cannot be edited safely stays unchanged.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		format progentry.Format
		text   string
		other  bool
	}{
		"another server": {plain, `{"mcpServers": {"tether": {"command": "node"}}}`, true},
		"a list":         {plain, `[]`, false}, "half a file": {plain, `{"mcpServers": {`, false}, "two documents": {plain, `{} {}`, false},
		"a section that is none": {plain, `{"mcpServers": []}`, false}, "a string": {plain, `{"a": "x`, false}, "a comment": {plain, `{ /* `, false},
		"TOML that is none": {codex, "a = \n", false}, "an inline table": {codex, `mcp_servers = { x = { command = "x" } }`, false},
	} {
		if got, err := c.format.Add([]byte(c.text), "tether", entry); err == nil || errors.Is(err, progentry.ErrOther) != c.other {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A byte order mark stays where it is, and removing the server restores the file.
func TestByteOrderMark(t *testing.T) {
	for _, c := range []struct {
		format progentry.Format
		text   string
	}{{codex, "model = \"m\"\r\n"}, {codex, ""}, {plain, "{\n\t\"a\": 1\n}\n"}} {
		before := []byte("\xef\xbb\xbf" + c.text)
		after, err := c.format.Add(before, "tether", entry)
		if err != nil {
			t.Fatalf("%q: %v", before, err)
		}
		if has, err := c.format.Has(after, "tether", "mcp"); err != nil || !has || !bytes.HasPrefix(after, []byte("\xef\xbb\xbf")) {
			t.Errorf("%q became %q: %v, %v", before, after, has, err)
		}
		again, err := c.format.Remove(after, "tether", "tether", "mcp")
		if err != nil || !bytes.Equal(again, before) {
			t.Errorf("%q became %q, %v", before, again, err)
		}
	}
	if _, err := codex.Has([]byte("\xff\xfea\x00"), "tether", "mcp"); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("UTF-16: %v", err)
	}
}

func FuzzAdd(f *testing.F) {
	for _, seed := range []string{"", "{}", "// a\n{\"mcpServers\": {\"x\": {},}, /* b */ \"y\": [1,]\n}", "{\"a\": 1 // x\n}", "\ufeff{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := plain.Add(text, "tether", entry)
		if err != nil {
			return
		}
		if has, err := plain.Has(got, "tether", "mcp"); err != nil || !has {
			t.Errorf("%q became %q, in which it is not found: %v", text, got, err)
		}
		if _, err := plain.Remove(got, "tether", "tether", "mcp"); err != nil && !strings.Contains(err.Error(), "by hand") {
			t.Errorf("it cannot be removed from %q: %v", got, err)
		}
	})
}
