package screen_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/screen"
)

func TestLinksInText(t *testing.T) {
	link := func(url, text string) string { return "\x1b]8;id=1;" + url + "\x1b\\" + text + "\x1b]8;;\x07" }
	for name, c := range map[string]struct{ in, want string }{
		"a link":                {"see " + link("https://a.example/x?y", "the docs") + " now\r\n", "see the docs [https://a.example/x?y] now\n"},
		"at the end":            {link("http://a.example", "docs"), "docs [http://a.example]"},
		"two":                   {link("http://a.example", "a") + link("http://b.example", "b") + "\r\n", "a [http://a.example]b [http://b.example]\n"},
		"the text itself":       {"at " + link("http://localhost:5173/", "http://localhost:5173") + "/\r\n", "at http://localhost:5173/\n"},
		"a file":                {link("file:///home/me/a.txt", "a.txt"), "a.txt"},
		"mail":                  {link("mailto:a@b.example", "a"), "a"},
		"of 500 bytes":          {link("http://a.example/"+strings.Repeat("x", 483), "a"), "a [http://a.example/" + strings.Repeat("x", 483) + "]"},
		"of 501 bytes":          {link("http://a.example/"+strings.Repeat("x", 484), "a"), "a"},
		"a control":             {link("http://a.example/\u202e", "a"), "a"},
		"no text":               {link("http://a.example", "   ") + "b", "   b"},
		"over two rows":         {link("https://a.example", strings.Repeat("docs ", 6)+"end") + ".\r\n", strings.Repeat("docs ", 6) + "end [https://a.example].\n"},
		"the URL over two rows": {link("https://a.example/a/long/path", "https://a.example/a/long/path") + "\r\n", "https://a.example/a/long/path\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := screen.New(20, 5)
			s.ShowLinks()
			fmt.Fprint(s, c.in)
			if got, _ := s.History(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			fmt.Fprint(s, strings.Repeat("\r\n", 10))
			if got, _ := s.History(); !strings.HasPrefix(got, strings.TrimSuffix(c.want, "\n")) {
				t.Errorf("scrolled away: got %q, want %q", got, c.want)
			}
		})
	}
	s := screen.New(1000, 5)
	s.ShowLinks()
	for i := range 1000 {
		fmt.Fprint(s, link(fmt.Sprintf("http://%d.example/%s", i%2, strings.Repeat("x", 400)), "x"))
	}
	if got, _ := s.History(); len(got) > 4<<10 {
		t.Errorf("a row has %d bytes", len(got))
	}
	if got := screen.BeforeCursor([]byte("Open "+link("http://a.example", "this page")+" and press Enter "), 80, 5); got != "Open this page [http://a.example] and press Enter" {
		t.Errorf("a prompt: %q", got)
	}
	plain := screen.New(80, 5)
	fmt.Fprint(plain, link("http://a.example", "a"))
	if got, _ := plain.History(); got != "a" {
		t.Errorf("unasked: %q", got)
	}
}
