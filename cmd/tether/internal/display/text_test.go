package display

import (
	"testing"
	"time"

	"tether/agent/localapi"
)

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Printable("a\x1b[31m\nb", 0):                         "a\uFFFD[31m b",
		Printable("abcdef", 3):                               "abc…",
		Printable("äöü", 3):                                  "äöü",
		Ago(-time.Second):                                    "0s",
		Ago(59 * time.Second):                                "59s",
		Ago(90 * time.Minute):                                "1h",
		Ago(50 * time.Hour):                                  "2d",
		ShellLine([]string{"a", "b c", "", "d'e"}):           `a 'b c' '' 'd'\''e'`,
		ShellLine([]string{"rm", "a\xe9\x27\\b", "a\uFFFD"}): `rm $'a\xe9\'\\b' 'a�'`,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// URLs stand before a command's line, where a narrow window shows them.
func TestCommand(t *testing.T) {
	at := func(urls ...string) (x localapi.Terminal) {
		x.Command = []string{"npm", "run", "dev"}
		for _, u := range urls {
			x.Listening = append(x.Listening, localapi.Listening{URL: u})
		}
		return x
	}
	asked, there, starting := at("http://a:3001", ""), at("http://a:3000"), at()
	asked.Port, asked.Listening[0].Port, asked.Listening[1].Port = 3000, 3001, 3001
	there.Port, there.Listening[0].Port, starting.Port = 3000, 3000, 3000
	for want, x := range map[string]localapi.Terminal{
		"asked for 3000, listens on 3001  http://a:3001  npm run dev": asked,
		"http://a:3000  npm run dev":                                  there,
		"npm run dev":                                                 at(),
		"http://a:1  npm run dev":                                     at("http://a:1", "http://a:1", ""),
		"http://a  b  c  …  npm run dev":                              at("http://a", "b", "c", "d"),
	} {
		if got := Command(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Command(starting); got != "npm run dev" {
		t.Errorf("before it listens: %q", got)
	}
}
