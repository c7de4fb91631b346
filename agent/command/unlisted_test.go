package command_test

import (
	"slices"
	"testing"

	"tether/agent/command"
)

// A program that is in no table may run its operands: names of programs, lines and code
// among them are read, data is not.
func TestUnlisted(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string // as said lists them
	}{
		{"foo -- rm x", []string{"rm x", "foo -- rm x"}},
		{"foo bar /bin/rm x", []string{"/bin/rm x", "foo bar /bin/rm x"}},
		{"foo sudo env A=1 rm x", []string{"rm x", "foo sudo env A=1 rm x", "outer env", "outer sudo", "A="}},
		{"foo bash", []string{"bash", "foo bash", "! code", "! interactive"}},
		{"foo python3 -c 1", []string{"python3 -c 1", "foo python3 -c 1", "! code"}},
		{"foo 'rm x'", []string{"rm x", "foo rm x"}},
		{"foo -- $X", []string{"foo -- $X", "! dynamic"}},
		{"tini $X", []string{"tini $X", "! dynamic"}},
		{"foo exec:a", []string{"foo exec:a", "! code"}},
		{"foo --pre-exec 'a b'", []string{"a b", "foo --pre-exec a b", "! code"}},
		{"foo --exec=gzip", []string{"gzip", "foo --exec=gzip"}},
		{"foo --eval x", []string{"foo --eval x", "! code"}},
		{"foo -javaagent:x", []string{"foo -javaagent:x", "! code"}},
		{"foosh -xc 'a b'", []string{"a b", "foosh -xc a b", "! code"}},
		{"foo -c 'a b'", []string{"foo -c a b", "! code"}},
		{"bash-5.2 -c a", []string{"a", "outer bash-5.2", "! code"}},
		{"/tmp/sh -c a", []string{"a", "outer sh", "! code"}},
		// Data.
		{"foo -c a.toml", []string{"foo -c a.toml"}},
		{"foo $X", []string{"foo $X"}},
		{"foo src/rm", []string{"foo src/rm"}},
		{"foo add 'rm old files'", []string{"foo add rm old files"}},
		{"foo completion bash", []string{"foo completion bash"}},
		{"foo --template node", []string{"foo --template node"}},
		{"which rm; apt-get install sudo; grep kill f", []string{"which rm", "apt-get install sudo", "grep kill f"}},
	} {
		if got := said(command.Line(c.line)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.line, got, c.want)
		}
	}
	if got := said(command.Argv([]string{"foo", "a", "|", "rm", "x"})); !slices.Equal(got, []string{"foo a | rm x"}) {
		t.Errorf("words that look like a line are not operands: %q", got)
	}
}

// tar's old options are read like its new ones, and shown as they were written.
func TestOldOptionsOfTar(t *testing.T) {
	r := command.Line("tar cIf 'a b' x.tar y")
	if got := said(r); !slices.Equal(got, []string{"a b", "tar cIf a b x.tar y", "! code"}) || r.Findings[0].Text != "tar cIf a b x.tar y" {
		t.Errorf("got %q, %q", got, r.Findings)
	}
	if r := command.Line("tar czf x.tgz y"); len(r.Findings) > 0 {
		t.Errorf("got %q", said(r))
	}
}
