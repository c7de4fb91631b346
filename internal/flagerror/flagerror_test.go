package flagerror_test

import (
	"testing"

	"github.com/spf13/pflag"

	"tether/internal/flagerror"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{"--for=1d", `--for must be a time such as 30s, 90m or 48h, not "1d"`},
		{"-n=x", `--lines must be a number, not "x"`},
		{"--lines=99999999999999999999", `--lines must be a smaller number, not "99999999999999999999"`},
		{"--speed=fast", `--speed must be a number, not "fast"`},
		{"--json=maybe", `--json must be true or false, not "maybe"`},
		{"--nonsense", "unknown flag: --nonsense"},
	} {
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		f.Duration("for", 0, "")
		f.IntP("lines", "n", 0, "")
		f.Float64("speed", 1, "")
		f.Bool("json", false, "")
		if got := flagerror.Text(f.Parse([]string{c.given})); got != c.want {
			t.Errorf("%s: %s, want %s", c.given, got, c.want)
		}
	}
}
