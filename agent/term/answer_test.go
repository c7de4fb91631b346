package term_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/answers"
	"tether/agent/term"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// rawTerminal starts a terminal whose program reads keys as they come. The test runs in a
// bubble.
func rawTerminal(t *testing.T, s term.Spec) (term.Handle, *lookedAt) {
	t.Helper()
	h, f := startLooked(t, term.Options{}, s)
	f.reads(false, false, keys)
	return h, f
}

// decide lets the time pass in which questions are decided.
func decide() {
	time.Sleep(150 * time.Millisecond)
	synctest.Wait()
}

const da1 = "\x1b[?62;22c"

// With nobody attached, questions are answered in fixed forms, in their order, as
// nobody's typing.
func TestAnswersWithNobodyAttached(t *testing.T) {
	for _, c := range []struct{ name, asks, want string }{
		{"device", "\x1b[c\x1b[0c", da1 + da1},
		{"status", "\x1b[5n", "\x1b[0n"},
		{"cursor", "abc\r\nde\x1b[6n", "\x1b[2;3R"},
		{"cursor, with ?", "abc\x1b[?6n", "\x1b[?1;12R"},
		{"modes", "\x1b[?2004h\x1b[?2004$p\x1b[?25$p\x1b[?2026$p\x1b[4$p\x1b[?2048$p\x1b[?31337$p", "\x1b[?2004;1$y\x1b[?25;1$y\x1b[?2026;2$y\x1b[4;2$y\x1b[?2048;0$y\x1b[?31337;0$y"},
		{"keyboard", "\x1b[?u\x1b[>5u\x1b[?u", "\x1b[?0u\x1b[?5u"},
		{"version", "\x1b[>q\x1b[>0q", "\x1bP>|tether\x1b\\\x1bP>|tether\x1b\\"},
		{"colours", "\x1b]10;?\a\x1b]11;?\x1b\\", "\x1b]10;rgb:ffff/ffff/ffff\a\x1b]11;rgb:0000/0000/0000\x1b\\"},
		{"in a row", "\x1b[?u\x1b]11;?\a\x1b[c", "\x1b[?0u\x1b]11;rgb:0000/0000/0000\a" + da1},
		{"nothing that was printed", "\x1b]2;evil\a\x1b[21t\x05\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b]52;c;?\a\x1b]4;1;?\a\x1b[c", da1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, f := rawTerminal(t, term.Spec{})
			f.Print("prompt? ")
			time.Sleep(10 * time.Second)
			before, _ := h.LastInput()
			f.Print(c.asks)
			decide()
			if got := f.Typed(); got != c.want {
				t.Errorf("%s: the program gets %q, want %q", c.name, got, c.want)
			}
			time.Sleep(10 * time.Second)
			if after, _ := h.LastInput(); after.Input != before.Input {
				t.Errorf("%s: it was %v, and with an answer it is %v", c.name, before, after)
			}
		})
	}
}

// Nothing is typed into a program that does not wait for an answer: lines are edited or
// shown, or text came behind the question, as a shell's prompt behind a file with
// questions.
func TestNoAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		lines, echo bool
		text, want  string
	}{
		"lines":                         {true, true, "\x1b[c", ""},
		"echo":                          {false, true, "\x1b[c", ""},
		"password":                      {true, false, "\x1b[c", ""},
		"a prompt behind it":            {false, false, "\x1b[c\r\n$ ", ""},
		"a prompt with colours":         {false, false, "\x1b[c\x1b[?2004h\x1b[32m>\x1b[m", ""},
		"text on the alternate screen":  {false, false, "\x1b[?1049h\x1b[ctext", da1},
		"settings behind it":            {false, false, "\x1b[c\x1b[?2004h\x1b[m", da1},
		"a question that is unanswered": {false, false, "\x1b[>c\x1b[=c\x1b[18t\x1b]52;c;?\a", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, f := rawTerminal(t, term.Spec{})
			f.reads(c.lines, c.echo, keys)
			f.Print(c.text)
			decide()
			if got := f.Typed(); got != c.want {
				t.Errorf("%s: the program gets %q, want %q", name, got, c.want)
			}
		})
	}
}

// A program that prints its prompt while the answer waits was not the one that has asked,
// nor is one in another process group.
func TestNoAnswersForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := rawTerminal(t, term.Spec{})
		f.Print("\x1b[c")
		time.Sleep(5 * time.Millisecond)
		f.Print("$ ")
		decide()
		f.Print("\x1b[c")
		time.Sleep(5 * time.Millisecond)
		f.look.Store(&pty.Look{Front: 1<<22 + 1, Reading: keys})
		decide()
		f.reads(false, false, keys)
		f.Print("\x1b[c")
		time.Sleep(5 * time.Millisecond)
		f.reads(true, true, keys)
		decide()
		if got := f.Typed(); got != "" {
			t.Errorf("the program gets %q", got)
		}
	})
}

// What a command of a shell has asked is not answered to the shell.
func TestNoAnswersBehindACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := rawTerminal(t, term.Spec{Nonce: "n"})
		f.Print("\x1b]633;A;n\a$ \x1b]633;B;n\acat file\r\n\x1b]633;E;cat file;n\a\x1b]633;C;n\a\x1b[c\x1b]633;D;0;n\a")
		decide()
		if got := f.Typed(); got != "" {
			t.Errorf("the shell gets %q", got)
		}
	})
}

// At most twenty answers are given in a second; a program that goes on asking gets them
// all.
func TestAnswersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := rawTerminal(t, term.Spec{})
		began := time.Now()
		for n := range 45 {
			f.Print("\x1b[5n\x1b[?1049h") // on the alternate screen answers come at once
			for f.Typed() != strings.Repeat("\x1b[0n", n+1) {
				if time.Sleep(time.Millisecond); time.Since(began) > time.Minute {
					t.Fatalf("of %d questions, %q is answered", n+1, f.Typed())
				}
			}
			if took := time.Since(began); took < time.Duration(n/20)*time.Second {
				t.Fatalf("%d answers took %v", n+1, took)
			}
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("45 answers took %v", took)
		}
	})
}

// A terminal that is expected answers itself, and others answer while none is attached.
func TestAnAwaitedTerminalAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := rawTerminal(t, term.Spec{Attaches: true})
		f.Print("\x1b[c")
		decide()
		s, err := h.Sit()
		if err != nil || s.Dealt() != 0 {
			t.Fatalf("%d bytes were dealt with before, %v", s.Dealt(), err)
		}
		f.Print("\x1b[5n")
		decide()
		if got := f.Typed(); got != "" {
			t.Errorf("with a terminal, the program gets %q", got)
		}
		s.Leave()
		f.Print("\x1b[?u")
		decide()
		if got := f.Typed(); got != "\x1b[?0u" {
			t.Errorf("without one, it gets %q", got)
		}
		late, err := h.Sit()
		if err != nil || late.Dealt() != 11 {
			t.Errorf("%d bytes were dealt with, %v", late.Dealt(), err)
		}
		late.Leave()
		never, g := rawTerminal(t, term.Spec{Attaches: true})
		time.Sleep(time.Minute)
		g.Print("\x1b[5n")
		decide()
		if got := g.Typed(); got != "\x1b[0n" {
			t.Errorf("a terminal that never came leaves %q, at %v", got, never.Info().Bytes)
		}
	})
}

// Of several attached terminals, the one that typed last answers, before that the first
// one. Answers of others are dropped, in any division.
func TestOneTerminalAnswers(t *testing.T) {
	all := []string{da1, "\x1b[>41;354;0c", "\x1b[=0c", "\x1b[0n", "\x1b[3;7R", "\x1b[?3;7R", "\x1b[?2004;1$y", "\x1b[4;2$y", "\x1b[?5u", "\x1bP>|xterm(354)\x1b\\", "\x1bP!|00000000\x1b\\",
		"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", "\x1b]10;rgb:ff/ff/ff\a", "\x1b]52;c;ZXZpbA==\a", "\x1bP1$r0m\x1b\\", "\x1bP1+r544e=78\x1b\\", "\x1b[8;24;80t", "\x1b[48;24;80;480;800t", "\x1b[?997;1n", "\x1b]lname\x1b\\",
		"\x1b_Gi=1;OK\x1b\\", "\x1b[>4;2m", "\x1b[?2;0;256S"}
	typed := []string{"a", "é", "\r", "\x1b", "\x1b[A", "\x1bOP", "\x1b[1;5C", "\x1b[13u", "\x1b[97;5u", "\x1b[27;2;126~", "\x1b[15~", "\x1bx", "\x1b]", "\x1bP", "\x1b[200~0\x1b[201~", "\x1b[192;41;126;1;16;1_"}
	h, _ := startLooked(t, term.Options{}, term.Spec{})
	var seats []*answers.Seat
	for range 3 {
		s := must.Get(h.Sit())(t)
		defer s.Leave()
		seats = append(seats, s)
	}
	in := func(s *answers.Seat, text string, size int) string {
		var out []byte
		for piece := range slices.Chunk([]byte(text), size) {
			out = append(out, s.Typed(piece)...)
		}
		return string(out)
	}
	check := func(when string, answerer int) {
		t.Helper()
		for i, s := range seats {
			for _, a := range all {
				for _, size := range []int{len(a), 3} {
					want := ""
					if i == answerer {
						want = a
					}
					if got := in(s, a, size); got != want {
						t.Errorf("%s: of terminal %d, %q passes as %q", when, i, a, got)
					}
				}
			}
			for _, event := range []string{"\x1b[I", "\x1b[O", "\x1b[<35;1;1M"} {
				if got := in(s, event, len(event)); got != event {
					t.Errorf("%s: of terminal %d, %q passes as %q", when, i, event, got)
				}
			}
		}
	}
	check("before anybody has typed", 0)
	for n, k := range typed {
		who := 1 + n%2
		if got := in(seats[who], k, len(k)); got != k {
			t.Errorf("of terminal %d, the key %q passes as %q", who, k, got)
		}
		check(fmt.Sprintf("after %q", k), who)
	}
	if got := in(seats[0], da1+"x"+da1, 100); got != "x"+da1 {
		t.Errorf("an answer, a key and an answer pass as %q", got)
	}
	seats[0].Leave()
	seats = seats[1:]
	check("after the last that typed has left", 0)
}

// A key that looks like the beginning of an answer passes with the next one.
func TestKeysLikeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := rawTerminal(t, term.Spec{})
		first := must.Get(h.Sit())(t)
		defer first.Leave()
		s := must.Get(h.Sit())(t)
		defer s.Leave()
		if got := s.Typed([]byte("\x1bPx")); len(got) > 0 {
			t.Errorf("at first %q passes", got)
		}
		time.Sleep(time.Second)
		if got := string(s.Typed([]byte("y"))); got != "\x1bPxy" {
			t.Errorf("then %q passes", got)
		}
	})
}
