package shellint_test

import (
	"fmt"

	"tether/shellint"
)

// A consumer keeps the raw bytes and leaves out the spans that its view must not have.
func ExampleScanner() {
	raw := []byte("\x1b]633;A;n0nce\a$ \x1b]633;B;n0nce\als\r\n\x1b[1mfile\x1b[m\r\n\x1b]2;title\a")
	s := shellint.NewScanner(shellint.Options{Nonce: "n0nce"})
	var (
		r    shellint.Result
		text []byte
		at   int64
	)
	for i := 0; i < len(raw); i += 10 {
		s.Scan(raw[i:min(i+10, len(raw))], &r)
		for _, sp := range r.Spans {
			if sp.Class != shellint.ClassMark {
				continue
			}
			text = append(text, raw[at:sp.Start]...)
			if sp.Splice {
				text = append(text, shellint.Splice...)
			}
			at = sp.End
		}
		text = append(text, raw[at:r.Decided]...) // undecided bytes wait for the next Scan
		at = r.Decided
	}
	fmt.Printf("%q\n", text)
	// Output: "$ ls\r\n\x1b[1mfile\x1b[m\r\n\x1b]2;title\a"
}

// Marks hold the meaning of the sequences.
func ExampleScanner_marks() {
	s := shellint.NewScanner(shellint.Options{})
	var r shellint.Result
	s.Scan([]byte("\x1b]633;E;echo a\\x3b b\a\x1b]633;D;130\a\x1b]7;file://box/home/a%20b\a"), &r)
	for _, m := range r.Marks {
		switch m.Kind {
		case shellint.KindLine:
			fmt.Println("line", m.Text)
		case shellint.KindCommandEnd:
			fmt.Println("exit", m.Exit.Code)
		case shellint.KindCwd:
			fmt.Println("directory", m.Text, "on", m.Host)
		}
	}
	// Output:
	// line echo a; b
	// exit 130
	// directory /home/a b on box
}

func ExampleTracker() {
	s := shellint.NewScanner(shellint.Options{})
	var (
		r  shellint.Result
		tr shellint.Tracker
	)
	s.Scan([]byte("\x1b]633;A\a$ \x1b]633;B\a"+
		"\x1b]633;E;make\a\x1b]633;C\aok\r\n\x1b]633;D;0\a"), &r)
	for _, e := range tr.Feed(&r) {
		switch e.Kind {
		case shellint.CommandOpened:
			fmt.Println("opened", e.Line, "output from", e.Off)
		case shellint.CommandClosed:
			fmt.Println("closed", e.Exit.Code, "output to", e.Off)
		}
	}
	// Output:
	// opened make output from 39
	// closed 0 output to 43
}
