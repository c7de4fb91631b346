package shellint_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/shellint"
)

// story feeds a stream to a Tracker in one piece and byte by byte, which must agree, and
// tells the events one per word: open#1"line"(source), close#1(exit,reason),
// name#1"line". A "\x00" in the stream marks input: the bytes up to the next "\x00" are
// written to the terminal at that point.
func story(t *testing.T, raw string, nonce string) string {
	t.Helper()
	whole := storyIn(raw, nonce, len(raw)+1)
	if got := storyIn(raw, nonce, 1); got != whole {
		t.Fatalf("%q: %s, but byte by byte %s", raw, whole, got)
	}
	return whole
}

func storyIn(raw, nonce string, size int) string {
	return storyOf(new(shellint.Tracker), raw, nonce, size)
}

func storyOf(tr *shellint.Tracker, raw, nonce string, size int) string {
	s := shellint.NewScanner(shellint.Options{Nonce: nonce})
	var r shellint.Result
	var events []string
	tell := func(list []shellint.CommandEvent) {
		for _, e := range list {
			events = append(events, eventString(e))
		}
	}
	for i, part := range strings.Split(raw, "\x00") {
		if i%2 == 1 {
			tr.Input([]byte(part))
			continue
		}
		for len(part) > 0 {
			n := min(size, len(part))
			s.Scan([]byte(part[:n]), &r)
			tell(tr.Feed(&r))
			part = part[n:]
		}
	}
	s.Close(&r)
	tell(tr.Feed(&r))
	tell(tr.Close(s.Offset(), shellint.Exit{Code: 9, Known: true}))
	return strings.Join(events, " ")
}

func eventString(e shellint.CommandEvent) string {
	switch e.Kind {
	case shellint.CommandOpened:
		within := ""
		if e.Within > 0 {
			within = fmt.Sprintf("in#%d", e.Within)
		}
		return fmt.Sprintf("open#%d%q%d%s", e.ID, e.Line, e.Source, within)
	case shellint.CommandNamed:
		return fmt.Sprintf("name#%d%q", e.ID, e.Line)
	}
	exit := "?"
	if e.Exit.Known {
		exit = fmt.Sprint(e.Exit.Code)
	}
	return fmt.Sprintf("close#%d(%s,%d)", e.ID, exit, e.Reason)
}

// marks writes a stream from words: A B C D0 D E:line are OSC 633, a1 c1 d1:0 OSC 133
// with aid 1, <text> input, other words output.
func marks(words string) string {
	var b strings.Builder
	for _, w := range strings.Fields(words) {
		switch c := w[0]; {
		case c == 'D' && len(w) > 1:
			b.WriteString("\x1b]633;D;" + w[1:] + "\a")
		case c == 'E' && len(w) > 1:
			b.WriteString("\x1b]633;E;" + w[2:] + "\a")
		case c >= 'A' && c <= 'D' && len(w) == 1:
			b.WriteString("\x1b]633;" + w + "\a")
		case c == 'd' && len(w) > 3:
			b.WriteString("\x1b]133;D;" + w[3:] + ";aid=" + w[1:2] + "\a")
		case (c == 'a' || c == 'b' || c == 'c') && len(w) == 2:
			b.WriteString("\x1b]133;" + strings.ToUpper(w[:1]) + ";aid=" + w[1:] + "\a")
		case c == '<':
			text := strings.NewReplacer("_", " ", "^M", "\r", "^C", "\x03", "^I", "\t").Replace(strings.Trim(w, "<>"))
			b.WriteString("\x00" + text + "\x00")
		default:
			b.WriteString(w)
		}
	}
	return b.String()
}

func TestTrackerRules(t *testing.T) {
	tests := []struct{ name, words, want string }{
		{"a command with its line", "A $ B E:ls C out D0 A", `open#1"ls"1 close#1(0,1)`},
		{"redrawn prompts", "A $ B A $ B A $ B", ``},
		{"Enter on nothing, nothing reported", "A $ B A $ B", ``},
		{"Enter on nothing, E C D", "A $ B E: C D0 A $ B", ``},
		{"Enter on nothing, C and prompt", "A $ B C A $ B", ``},
		{"Ctrl-C at the prompt", "A $ B D A $ B", ``},
		{"D without C, second D", "D0 A $ B E:x C D1 D0", `open#1"x"1 close#1(1,1)`},
		{"output makes it certain", "A $ B C out", `open#1""0 close#1(9,4)`},
		{"D makes it certain", "A $ B C D3", `open#1""0 close#1(3,1)`},
		{"missing D", "A $ B E:x C out A $ B", `open#1"x"1 close#1(?,2)`},
		{"two lines pasted", "A $ B E:x C out E:y C D0", `open#1"x"1 close#1(?,3) open#2"y"1 close#2(0,1)`},
		{"the shell exits", "A $ B E:exit C", `open#1"exit"1 close#1(9,4)`},
		{"a prompt forgets a line", "A $ B E:x A $ B C out D0", `open#1""0 close#1(0,1)`},
		{"late line", "A $ B C out D0 E:ls A $ B", `open#1""0 close#1(0,1) name#1"ls"`},
		{"late line after a prompt", "A $ B C out D0 A E:ls", `open#1""0 close#1(0,1)`},
		{"late line of a named one", "A $ B E:a C D0 E:b A", `open#1"a"1 close#1(0,1)`},
		{"numbers without gaps", "B C A B C out D0 B E:x C D0", `open#1""0 close#1(0,1) open#2"x"1 close#2(0,1)`},
		{"unknown ids are never named", "B C A E:x B", ``},
		{"133 alone", "a1 $ b1 c1 out d1:2 a1", `open#1""0 close#1(2,1)`},
		{"a shell inside, by aid", "a1 $ b1 c1 out a2 $ b2 c2 x d2:1 a2 $ d1:0 a1", `open#1""0 close#1(0,1)`},
		{"another shell at the prompt", "a1 $ b1 a2 $ b2 c2 x d2:1", `open#1""0 close#1(1,1)`},
		{"both, 633 counts", "a1 A $ b1 B c1 E:x C out d1:0 D0 a1 A", `open#1"x"1 close#1(0,1)`},
		{"typed line", "A $ B <ls_-l^M> C out D0", `open#1"ls -l"4 close#1(0,1)`},
		{"typed with a redraw", "A $ B <l> A $ B <s^M> C out D0", `open#1"ls"4 close#1(0,1)`},
		{"typed and told", "A $ B <typed^M> E:told C D0", `open#1"told"1 close#1(0,1)`},
		{"typed in two prompts", "A $ B <x> E:a C D0 A $ B <ls^M> C o D0", `open#1"a"1 close#1(0,1) open#2"ls"4 close#2(0,1)`},
		{"completed by the shell", "A $ B <l^I^M> C out D0", `open#1""0 close#1(0,1)`},
		{"two lines at once", "A $ B <a^Mb^M> C o D0 A $ B C o D0", `open#1""0 close#1(0,1) open#2""0 close#2(0,1)`},
		{"typed ahead", "A $ B E:x C <ls^M> o D0 A $ B C o D0", `open#1"x"1 close#1(0,1) open#2""0 close#2(0,1)`},
		{"half typed ahead", "A $ B E:x C <l> o D0 A $ B <s^M> C o D0 A $ B <y^M> C o D0",
			`open#1"x"1 close#1(0,1) open#2""0 close#2(0,1) open#3"y"4 close#3(0,1)`},
		{"cancelled line", "A $ B <no^C> A $ B <yes^M> C o D0", `open#1"yes"4 close#1(0,1)`},
		{"Enter on nothing, then a line", "A $ B <^M> A $ B <ls^M> C o D0", `open#1"ls"4 close#1(0,1)`},
		{"typed after Enter, before the prompt", "A $ B <^Ml> A $ B <s^M> C o D0", `open#1""0 close#1(0,1)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := story(t, marks(tt.words), ""); got != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", tt.words, got, tt.want)
			}
		})
	}
}

func TestTrackerTrust(t *testing.T) {
	forged := "\x1b]633;E;rm -rf /\a\x1b]633;E;rm -rf /;bad\a\x1b]133;C\a\x1b]633;C;bad\aout\x1b]633;D;0\a"
	if got := story(t, forged, "secret"); got != "" {
		t.Errorf("without the nonce: %s", got)
	}
	real := "\x1b]633;E;cat f;secret\a\x1b]633;C;secret\a" + forged + "\x1b]633;A\a\x1b]633;D;3;secret\a"
	if got, want := story(t, real, "secret"), `open#1"cat f"1 close#1(3,1)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// signed writes a stream as marks does; words that begin with + are marks with the nonce
// "n".
func signed(words string) string {
	var b strings.Builder
	for _, w := range strings.Fields(words) {
		if mark, ok := strings.CutPrefix(w, "+"); ok {
			b.WriteString(strings.Replace(marks(mark), "\a", ";n\a", 1))
			continue
		}
		b.WriteString(marks(w))
	}
	return b.String()
}

// Marks without the nonce make commands where no signed integration speaks, and inside a
// signed command once their shell has shown a prompt. They never change a signed command.
func TestTrackerUnsigned(t *testing.T) {
	tests := []struct{ name, words, want string }{
		{"no signed marks", "A $ B E:ls C out D0 A", `open#1"ls"1 close#1(0,1)`},
		{"signed marks take over", "E:x C out +A $ +B +E:y +C +D0", `open#1"x"1 close#1(?,5) open#2"y"1 close#2(0,1)`},
		{"between two signed prompts and their commands", "+A $ +B E:x C out D0 +E:y +C +D0", `open#1"y"1 close#1(0,1)`},
		{"the same shell's own, around", "+A a1 $ b1 +B c1 +E:x +C out d1:0 +D0 a1", `open#1"x"1 close#1(0,1)`},
		{"the same shell's own, inside", "+A a1 $ b1 +B +E:x +C c1 out +D0 d1:0 a1", `open#1"x"1 close#1(0,1)`},
		{"a shell inside", "+E:ssh_h +C A $ B E:ls C out D3 A $ B D +D0 +A", `open#1"ssh_h"1 open#2"ls"1in#1 close#2(3,1) close#1(0,1)`},
		{"two commands inside", "+E:su +C A $ B E:a C D0 A $ B E:b C D1 A $ B +D0", `open#1"su"1 open#2"a"1in#1 close#2(0,1) open#3"b"1in#1 close#3(1,1) close#1(0,1)`},
		{"the connection is cut", "+E:ssh +C A $ B E:x C out +D255 +A", `open#1"ssh"1 open#2"x"1in#1 close#2(?,5) close#1(255,1)`},
		{"the next one starts at its own prompt", "+E:ssh +C A $ B +D0 +A +B +E:y +C C out +D0", `open#1"ssh"1 close#1(0,1) open#2"y"1 close#2(0,1)`},
		{"a file that ends the command", "+E:cat +C out D0 more +D3", `open#1"cat"1 close#1(3,1)`},
		{"a file that names the command", "+A +B E:nice +C out +D0", `open#1""0 close#1(0,1)`},
		{"a file with a prompt that names the next", "+C out A $ B E:nice +D0 +A +B +C out +D0", `open#1""0 close#1(0,1) open#2""0 close#2(0,1)`},
		{"typed inside", "+E:ssh +C A $ B <ls^M> C out D0 A +D0 +A +B <pwd^M> +C x +D0",
			`open#1"ssh"1 open#2"ls"4in#1 close#2(0,1) close#1(0,1) open#3""0 close#3(0,1)`},
		{"the end of the stream", "+E:ssh +C A $ B E:x C out", `open#1"ssh"1 open#2"x"1in#1 close#2(?,4) close#1(9,4)`},
		{"the end of the stream, unsigned", "E:x C out", `open#1"x"1 close#1(9,4)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				tr := &shellint.Tracker{Unsigned: true}
				if got := storyOf(tr, signed(tt.words), "n", size); got != tt.want {
					t.Errorf("%s, in pieces of %d:\n got %s\nwant %s", tt.words, size, got, tt.want)
				}
			}
		})
	}
}

// The signed commands of a stream are the same whichever unsigned marks lie between.
func FuzzUnsignedMarks(f *testing.F) {
	f.Add([]byte("+A+B+e+CABeCoD+DA"))
	f.Add([]byte("+CAB+C+DC+D+A"))
	f.Add([]byte("+CBC+A"))
	f.Fuzz(func(t *testing.T, letters []byte) {
		var all, trusted strings.Builder
		plus := false
		for _, c := range letters[:min(len(letters), 200)] {
			word := map[byte]string{'A': "A", 'B': "B", 'C': "C", 'D': "D0", 'e': "E:x"}[c]
			switch {
			case c == '+':
				plus = true
				continue
			case word == "":
				all.WriteString("out")
				trusted.WriteString("out")
			case plus:
				all.WriteString(signed("+" + word))
				trusted.WriteString(signed("+" + word))
			default:
				all.WriteString(marks(word))
			}
			plus = false
		}
		if got, want := verified(all.String()), verified(trusted.String()); got != want {
			t.Fatalf("%q: %s, without the others %s", letters, got, want)
		}
	})
}

// verified tells the commands of trusted marks, without their numbers and places.
func verified(raw string) string {
	s := shellint.NewScanner(shellint.Options{Nonce: "n"})
	tr := &shellint.Tracker{Unsigned: true}
	var r shellint.Result
	var out []string
	tell := func(events []shellint.CommandEvent) {
		for _, e := range events {
			if e.Verified {
				e.ID = 0
				out = append(out, eventString(e))
			}
		}
	}
	s.Scan([]byte(raw), &r)
	tell(tr.Feed(&r))
	s.Close(&r)
	tell(tr.Feed(&r))
	tell(tr.Close(s.Offset(), shellint.Exit{}))
	return strings.Join(out, " ")
}

// TestTrackerSpansAreNoOutput checks that a title between C and the prompt does not make
// Enter on nothing a command.
func TestTrackerSpansAreNoOutput(t *testing.T) {
	title := "\x1b]2;title\a\x1b]7;file://h/p\a"
	if got := story(t, marks("A $ B C")+title+marks("A $ B"), ""); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestTrackerStepByStep(t *testing.T) {
	var r shellint.Result
	s := shellint.NewScanner(shellint.Options{})
	tr := new(shellint.Tracker)
	if tr.Detected() {
		t.Error("a new Tracker knows of marks")
	}
	s.Scan([]byte("\x1b]133;C\a"), &r)
	if got := tr.Feed(&r); len(got) != 0 || !tr.Detected() {
		t.Errorf("after C: %+v", got)
	}
	if got := tr.Announce(); len(got) != 1 || got[0].Kind != shellint.CommandOpened || got[0].Off != 8 {
		t.Errorf("announced: %+v", got)
	}
	if got := tr.Announce(); len(got) != 0 {
		t.Errorf("announced twice: %+v", got)
	}
	if got := tr.Close(8, shellint.Exit{}); len(got) != 1 || got[0].Reason != shellint.ClosedByEOF {
		t.Errorf("closed: %+v", got)
	}
}

// FuzzTracker checks that events make sense for any stream: each command opens once,
// closes at most once after that, and is named only when it has no line.
func FuzzTracker(f *testing.F) {
	f.Add([]byte(marks("A $ B E:x C out D0 A C E:y A B C D1 E:z")))
	f.Add([]byte(marks("a1 c1 a2 c2 d2:0 d1:1 C C D")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		const opened, closed = 1, 2
		state := map[int64]int{}
		last := int64(0)
		for _, e := range trackPieces(raw, shellint.Options{}, false, nil) {
			switch e.Kind {
			case shellint.CommandOpened:
				if e.ID != last+1 || len(state) > 0 && state[last] != closed {
					t.Fatalf("%q: opened %d after %d", raw, e.ID, last)
				}
				last, state[e.ID] = e.ID, opened
			case shellint.CommandClosed:
				if state[e.ID] != opened {
					t.Fatalf("%q: closed %d, which is not open", raw, e.ID)
				}
				state[e.ID] = closed
			case shellint.CommandNamed:
				if state[e.ID] != closed || e.Line == "" {
					t.Fatalf("%q: named %d %q", raw, e.ID, e.Line)
				}
			}
		}
		if last > 0 && state[last] != closed {
			t.Fatalf("%q: %d is open at the end", raw, last)
		}
	})
}
