package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/internal/testkit/must"
)

// A value that is read can be written and is then read as the same; a refused file gives
// the reason, on one printable line per problem that names a line of the file.
func FuzzParse(f *testing.F) {
	d := config.Default()
	var all strings.Builder
	must.Get(d.WriteTo(&all))(f)
	for _, s := range []string{
		all.String(), "", "[terminals]\nlog_bytes = \"1.5MiB\"", "terminals = {max_running = 1, x = [{a = 1}]}", "[[terminals]]\n[[terminals.x]]",
		"a.b.c = [1, {d = 2}]\n[a.e]\n", "[uplink]\nheartbeat = 1979-05-27T07:32:00Z", "\"\" = 1", "x = nan\r\ny = '''\n'''", "[terminals]\n\"a\\u001b\" = \"\\u0000\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data)
		if err != nil {
			lines := strings.Count(string(data), "\n") + 1
			for _, p := range err.(*config.Error).Problems {
				if p.Line < 0 || p.Line > lines || p.Text == "" || strings.ContainsAny(p.Key+p.Text, "\x1b\n\r\x00") {
					t.Errorf("%q: problem %+v of %d lines", data, p, lines)
				}
			}
			return
		}
		var b strings.Builder
		must.Get(c.WriteTo(&b))(t)
		again, err := config.Parse("f", []byte(b.String()))
		if d := cmp.Diff(c, again); err != nil || d != "" {
			t.Errorf("%q was written as\n%s\nwhich is read to %v:\n%s", data, b.String(), err, d)
		}
	})
}
