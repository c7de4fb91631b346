package installer

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

var services = map[string]Service{
	"user": {Program: "/usr/bin/tether", User: "dev", UID: 1000, UserHome: "/home/dev"},
	"home": {Program: "/opt/my tools/tether", Home: "/home/dev/100% \"tëst\" $HOME", Env: []string{"XDG_CONFIG_HOME=/home/dev/--> c;"},
		User: "dev", UID: 1000, UserHome: "/home/dev"},
	"system": {Program: "/usr/bin/tether", System: true, User: "dev", UID: 1000, UserHome: "/home/dev", Lingers: true},
	"root":   {Program: "/usr/bin/tether", System: true, User: "root", UserHome: "/root", AllowRoot: true},
}

// The rendered files are in testdata, so that people can read them. make test-systemd has
// systemd itself check them.
func TestRenderedTexts(t *testing.T) {
	for name, s := range services {
		must.Do(t, s.Check("linux"))
		compare(t, name+".service", SystemdUnit(s))
		plist := LaunchdPlist(s, "/Users/dev/Library/Logs/tether.log")
		compare(t, name+".plist", plist)
		checkPlist(t, plist)
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	check.Equal(t, fmt.Sprintf("%s: ", file), string(want), got)
}

// launchdKeys are the keys of launchd.plist(5) that LaunchdPlist uses, with the types of
// their values. launchd ignores unknown keys, so without this list nobody would notice a
// typing error.
var launchdKeys = map[string]string{
	"Label": "string", "ProgramArguments": "array", "EnvironmentVariables": "dict", "UserName": "string", "WorkingDirectory": "string",
	"RunAtLoad": "true", "KeepAlive": "dict", "ThrottleInterval": "integer", "ExitTimeOut": "integer", "AbandonProcessGroup": "true",
	"ProcessType": "string", "StandardOutPath": "string", "StandardErrorPath": "string",
}

func checkPlist(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	depth, key, inKey := 0, "", false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		must.Do(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			inKey = depth == 3 && token.Name.Local == "key"
			if depth == 3 && !inKey && launchdKeys[key] != token.Name.Local {
				t.Errorf("%q is a %s, want %q", key, token.Name.Local, launchdKeys[key])
			}
		case xml.EndElement:
			depth--
			inKey = false
		case xml.CharData:
			if inKey {
				key = string(token)
			}
		}
	}
}

func TestWindowsWords(t *testing.T) {
	for in, want := range map[string]string{
		`C:\Program Files\tether\tether.exe`: `"C:\Program Files\tether\tether.exe"`,
		`C:\tether.exe`:                      `C:\tether.exe`,
		``:                                   `""`,
		`C:\my dir\`:                         `"C:\my dir\\"`,
		`say "hi"`:                           `"say \"hi\""`,
		`back\"slash`:                        `"back\\\"slash"`,
	} {
		if got := windowsWord(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	s := Service{Program: `C:\Users\Zoë B\tether.exe`, Home: `D:\t h`}
	if got, want := LogonCommand(s), `"C:\Users\Zoë B\tether.exe" service logon --home "D:\t h"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnfitServices(t *testing.T) {
	for name, tt := range map[string]struct {
		s    Service
		goos string
		want string
	}{
		"no program":       {Service{}, "linux", "no path was given"},
		"relative":         {Service{Program: "bin/tether"}, "linux", "not an absolute path"},
		"relative windows": {Service{Program: `\tether.exe`}, "windows", "not an absolute path"},
		"unix on windows":  {Service{Program: `/usr/bin/tether`}, "windows", "not an absolute path"},
		"line end":         {Service{Program: "/a\nExecStart=/b"}, "linux", "characters"},
		"bad home":         {Service{Program: "/t", Home: "x"}, "linux", "TETHER_HOME"},
		"bad environment":  {Service{Program: "/t", Env: []string{"=x"}}, "linux", "NAME=value"},
		"bad value":        {Service{Program: "/t", Env: []string{"X=y"}}, "linux", "not an absolute path"},
		"nobody":           {Service{Program: "/t", System: true}, "linux", "needs the user"},
		"odd user":         {Service{Program: "/t", System: true, User: "a b", UID: 5}, "linux", "not the name of a user"},
		"root":             {Service{Program: "/t", System: true, User: "root"}, "linux", "as root"},
		"own root":         {Service{Program: "/t", User: "root"}, "linux", "as root"},
		"root on a mac":    {Service{Program: "/t", System: true, User: "root"}, "darwin", "as root"},
	} {
		err := tt.s.Check(tt.goos)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want something with %q", name, err, tt.want)
		}
	}
	fit := Service{Program: `\\server\share\tether.exe`, User: `HOST\Zoë B`}
	check.OK(t, fit.Check("windows"))
}
