package shellint_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/shellint"
)

// onlyMark scans one sequence that must be one mark.
func onlyMark(t *testing.T, raw string) shellint.Mark {
	t.Helper()
	res := scanBoth(t, raw, shellint.Options{})
	if len(res.marks) != 1 || res.marks[0].End != int64(len(raw)) {
		t.Fatalf("%q: %d marks", raw, len(res.marks))
	}
	return res.marks[0]
}

func TestCommandLines(t *testing.T) {
	tests := []struct{ raw, want string }{
		{`633;E;a\\b\x3bc\x0ad`, "a\\b;c\nd"},
		{`633;E;\xc3\xA9 “x”`, "é “x”"},
		{`633;E;\q\x\x4\`, `\q\x\x4\`},
		{`633;E;`, ""},
		{`133;C;cmdline_url=a%20b%3B%zz%`, "a b;%zz%"},
		{`133;C; cmdline_url=a`, "a"},
		{`133;C;cmdline_url=a;cmdline_url=b`, "b"},
		{`133;C;cmdline=echo\ \"a\;\ b\";aid=4`, `echo "a; b"`},
		{`133;C;cmdline='a;b '\''c'\''';aid=4`, `a;b 'c'`},
		{`133;C;cmdline=$'\'\\\n\t\e\303\274\xc3\xBC\u00fc\U0001F600\cA\q\?;'`, "'\\\n\t\x1büüü😀\x01\\q?;"},
		{`133;C;cmdline="a \"b\" \$c \q"x`, `a "b" $c \qx`},
		{`133;C;cmdline='open`, "open"},
		{`133;C;cmdline="open`, "open"},
		{`133;C;cmdline=$'open\`, `open\`},
		{`133;C;cmdline=\`, `\`},
		{`133;C;cmdline=$'\x\u\U\c`, `\x\u\U\c`},
	}
	for _, tt := range tests {
		if m := onlyMark(t, "\x1b]"+tt.raw+"\a"); !m.HasText || m.Text != tt.want {
			t.Errorf("%s: %q, want %q", tt.raw, m.Text, tt.want)
		}
	}
}

func TestVerbs(t *testing.T) {
	tests := []struct {
		raw  string
		want shellint.Kind
	}{
		{"133;A;k=i", shellint.KindPromptStart},
		{"133;N", shellint.KindPromptStart},
		{"133;P", shellint.KindPromptStart},
		{"133;P;k=i", shellint.KindPromptStart},
		{"133;P;k=r", shellint.KindOther},
		{"133;P;k=c", shellint.KindOther},
		{"133;B", shellint.KindPromptEnd},
		{"133;I", shellint.KindPromptEnd},
		{"133;C", shellint.KindOutputStart},
		{"133;D", shellint.KindCommandEnd},
		{"133;L", shellint.KindOther},
		{"133;k;start_kitty", shellint.KindOther},
		{"133;E;x", shellint.KindOther},
		{"633;E;x", shellint.KindLine},
		{"633;E", shellint.KindOther},
		{"633;P;k=r", shellint.KindProperty},
		{"633;P;Cwd=/", shellint.KindCwd},
		{"633;P;Cwd", shellint.KindProperty},
		{"633;N", shellint.KindOther},
		{"633;SetMark;Id=1", shellint.KindOther},
		{"633;AA", shellint.KindOther},
		{"633;", shellint.KindOther},
	}
	for _, tt := range tests {
		if m := onlyMark(t, "\x1b]"+tt.raw+"\a"); m.Kind != tt.want {
			t.Errorf("%s: kind %d, want %d", tt.raw, m.Kind, tt.want)
		}
	}
}

func TestMarkFields(t *testing.T) {
	m := onlyMark(t, "\x1b]133;D;2;err=E; aid=1;aid=2\x1b\\")
	if aid, ok := m.Opt("aid"); !ok || aid != "2" {
		t.Errorf("aid %q %v", aid, ok)
	}
	if _, ok := m.Opt("ai"); ok {
		t.Error("a prefix of a key is not the key")
	}
	if got := strings.Join(m.Args(), "|"); got != "2|err=E| aid=1|aid=2" {
		t.Errorf("args %s", got)
	}
	m = onlyMark(t, "\x1b]633;SetMark;Id=1;Hidden\a")
	if m.Verb() != "SetMark" || len(m.Args()) != 2 || string(m.Payload()) != "SetMark;Id=1;Hidden" {
		t.Errorf("verb %q args %q payload %q", m.Verb(), m.Args(), m.Payload())
	}
	if _, ok := m.Opt("Id"); ok {
		t.Error("OSC 633 has no options")
	}
	m = onlyMark(t, "\x1b]633;P;Cwd=C:\\\\x\\x3by\a")
	if m.Key != "Cwd" || m.Text != `C:\x;y` {
		t.Errorf("key %q text %q", m.Key, m.Text)
	}
}

func TestNonceAnywhere(t *testing.T) {
	for raw, want := range map[string]bool{
		"633;A;n1":         true,
		"633;D;0;n1":       true,
		"633;E;x;n1;extra": true,
		"633;E;n1":         true,
		"633;A":            false,
		"633;n1":           false,
		"633;A;n12":        false,
		"633;A;xn1":        false,
		"633;A;":           false,
		"133;C":            false,
	} {
		res := scanBoth(t, "\x1b]"+raw+"\a", shellint.Options{Nonce: "n1"})
		if res.marks[0].Trusted != want {
			t.Errorf("%s: trusted %v", raw, res.marks[0].Trusted)
		}
	}
}

// FuzzCommandLine checks that any command line comes back from each way to write it.
func FuzzCommandLine(f *testing.F) {
	f.Add("echo 'a;b' \\ \n é \x00\x9c\x1b")
	f.Fuzz(func(t *testing.T, line string) {
		var hex, percent, octal strings.Builder
		for _, b := range []byte(line) {
			fmt.Fprintf(&percent, "%%%02x", b)
			fmt.Fprintf(&octal, `\%03o`, b)
			switch {
			case b == '\\':
				hex.WriteString(`\\`)
			case b <= 0x20 || b == ';' || b >= 0x7f:
				fmt.Fprintf(&hex, `\x%02X`, b)
			default:
				hex.WriteByte(b)
			}
		}
		for _, raw := range []string{
			"633;E;" + hex.String(),
			"133;C;cmdline_url=" + percent.String(),
			"133;C;cmdline=$'" + octal.String() + "';aid=1",
		} {
			if m := onlyMark(t, "\x1b]"+raw+"\a"); m.Text != line {
				t.Fatalf("%s: %q, want %q", raw, m.Text, line)
			}
		}
	})
}

func TestMarksOfAReader(t *testing.T) {
	for _, tt := range []struct {
		raw, nonce string
		want       shellint.Kind
		cols, rows int
	}{
		{"633;P;Size=120x40;n1", "n1", shellint.KindSize, 120, 40},
		{"633;P;Size=1x1000;n1", "n1", shellint.KindSize, 1, 1000},
		{"633;P;Gap=unknown;n1", "n1", shellint.KindGap, 0, 0},
		{"633;P;Size=120x40", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Size=120x40;n2", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Gap=unknown", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Size=120x40", "", shellint.KindProperty, 0, 0},
		{"633;P;Gap=unknown", "", shellint.KindProperty, 0, 0},
		{"633;P;Size=0x40;n1", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Size=80x1001;n1", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Size=80;n1", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Size=80x24x2;n1", "n1", shellint.KindProperty, 0, 0},
		{"633;P;Size=99999999999999999999x24;n1", "n1", shellint.KindProperty, 0, 0},
	} {
		res := scanBoth(t, "\x1b]"+tt.raw+"\a", shellint.Options{Nonce: tt.nonce})
		m := res.marks[0]
		if m.Kind != tt.want {
			t.Errorf("%s with nonce %q: kind %d, want %d", tt.raw, tt.nonce, m.Kind, tt.want)
		}
		if cols, rows := m.Size(); m.Kind == shellint.KindSize && (cols != tt.cols || rows != tt.rows) {
			t.Errorf("%s: %d columns and %d rows", tt.raw, cols, rows)
		}
	}
}
