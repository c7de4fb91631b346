package term_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

const nonce = "n0"

// marks of one command as our own scripts write them.
func command(line, output string, code int) string {
	return fmt.Sprintf("\x1b]633;A;n0\a$ \x1b]633;B;n0\a%s\r\n\x1b]633;E;%s;n0\a\x1b]633;C;n0\a%s\x1b]633;D;%d;n0\a", line, line, output, code)
}

func TestViews(t *testing.T) {
	cases := []struct {
		name, out    string
		text, screen string
	}{
		{"plain", "hi\r\n", "hi\r\n", "hi\r\n"},
		{"mark", "a\x1b]633;A\ab", "ab", "ab"},
		{"another integration's mark", "a\x1b]133;A;k=s\ab\x1b]133;B\x1b\\c", "abc", "a\x1b]133;A;k=s\ab\x1b]133;B\x1b\\c"},
		{"ours inside another's", "a\x1b]133;A\x1b]633;B\ab", "a\x1b\\b", "a\x1b]133;A\x1b\\b"},
		{"title passes", "a\x1b]0;t\ab", "a\x1b]0;t\ab", "a\x1b]0;t\ab"},
		{"cursor query", "a\x1b[6nb", "ab", "a\x1b[6nb"},
		{"clipboard", "a\x1b]52;c;aGk=\ab", "ab", "a\x1b]52;c;aGk=\ab"},
		{"invalid UTF-8", "a\xff\xfeb", "a\uFFFD\uFFFDb", "a\xff\xfeb"},
		{"cut-off character at the end", "a\xe2\x9c", "a\uFFFD\uFFFD", "a\xe2\x9c"},
		{"mark inside a character", "\xe2\x9c\x1b]633;A\a\x93", "\uFFFD\uFFFD\x1b\\\uFFFD", "\xe2\x9c\x1b\\\x93"},
		{"smuggled mark", "\x1b\x1b]633;A\a]633;D;0\a", "\x1b\x1b\\]633;D;0\a", "\x1b\x1b\\]633;D;0\a"},
		{"a NUL", "a\x00b", "a\x00b", "a\x00b"},
		{"who are you", "a\x1bZb", "ab", "a\x1bZb"},
		{"print", "a\x1b[5ib\x1b[ic\x1b[?5id", "abcd", "a\x1b[5ib\x1b[ic\x1b[?5id"},
		{"terminal state report", "a\x1b[1$ub", "ab", "a\x1b[1$ub"},
		{"kitty's queries", "a\x1b]21;foreground=?\ab\x1b]22;?\ac\x1b]99;i=1:p=?;\ad\x1b]5522;type=read\ae\x1b[?uf", "abcdef",
			"a\x1b]21;foreground=?\ab\x1b]22;?\ac\x1b]99;i=1:p=?;\ad\x1b]5522;type=read\ae\x1b[?uf"},
	}
	for _, c := range cases {
		for split := 0; split <= len(c.out); split++ {
			synctest.Test(t, func(t *testing.T) {
				h, f, _ := start(t, term.Options{}, term.Spec{})
				text := reader(t, h, output.ReaderOptions{View: output.ViewText})
				screen := reader(t, h, output.ReaderOptions{View: output.ViewScreen})
				raw := reader(t, h, output.ReaderOptions{View: output.ViewRaw})
				for _, part := range []string{c.out[:split], c.out[split:]} {
					if part != "" {
						f.Print(part)
					}
				}
				f.End(0)
				synctest.Wait()
				for view, want := range map[*output.Reader]string{text: c.text, screen: c.screen, raw: c.out} {
					got := ""
					for _, e := range events(t, view) {
						got += e.Data
					}
					if got != want {
						t.Errorf("%s, split at %d: view shows %q, want %q", c.name, split, got, want)
					}
				}
			})
		}
	}
}

func TestCommandBoundariesAreInStreamOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{Nonce: nonce})
		r := reader(t, h, output.ReaderOptions{})
		f.Print(command("ls", "file\r\n", 0) + command("false", "", 1))
		f.Print("\x1b]633;C\afake") // without the nonce: nothing
		f.End(3)
		synctest.Wait()
		want := []item{
			{Mark: output.MarkDetection}, {Data: "$ ls\r\n"},
			{Mark: output.MarkCommandExecuted}, {Data: "file\r\n", Off: 6}, {Mark: output.MarkCommandFinished},
			{Data: "$ false\r\n", Off: 12}, {Mark: output.MarkCommandExecuted}, {Mark: output.MarkCommandFinished},
			{Data: "fake", Off: 21}, {Mark: output.MarkExited},
		}
		check.Equal(t, "events differ", want, events(t, r))
		commands, err := h.Commands()
		if err != nil || len(commands) != 2 {
			t.Fatalf("commands = %v, %v; want two", commands, err)
		}
		if c := commands[1]; c.Text() != "false" || c.Exit == nil || *c.Exit != 1 || c.Start != c.End {
			t.Errorf("second command = %+v, want false with exit 1 and no output", c)
		}
	})
}

func TestShellThatDiesClosesItsCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{Nonce: nonce})
		f.Print("\x1b]633;E;exit 7;n0\a\x1b]633;C;n0\abye\r\n")
		f.End(7)
		<-h.Done()
		commands, _ := h.Commands()
		if len(commands) != 1 || commands[0].Running || commands[0].Exit == nil || *commands[0].Exit != 7 {
			t.Errorf("commands = %+v, want one, closed with 7", commands)
		}
	})
}

// A shell that reports no lines: a silent command must not stay unseen until its end,
// Enter on nothing must not be seen at all.
func TestCommandsWithoutALineAreAnnouncedAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		r := reader(t, h, output.ReaderOptions{})
		f.Print("\x1b]133;A\a\x1b]133;B\a\x1b]133;C\a\x1b]133;A\a\x1b]133;B\a") // Enter on nothing
		time.Sleep(time.Second)
		f.Print("\x1b]133;C\a") // sleep 100
		synctest.Wait()
		want := []item{{Mark: output.MarkDetection}}
		check.Equal(t, "at once", want, events(t, r))
		time.Sleep(30 * time.Millisecond)
		want = []item{{Mark: output.MarkCommandExecuted}}
		check.Equal(t, "after a moment", want, events(t, r))
	})
}

func TestReportsNeedTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{Nonce: nonce, Cwd: testkit.Abs("/home")})
		f.Print("\x1b]633;P;Cwd=/evil\a\x1b]7;file:///evil\a\x1b]633;P;Cwd=/src;n0\a")
		prints(f, "\x1b]0;a \x1b]2;title\a"+"\x1b]2;"+strings.Repeat("é", 4000)+"\a")
		i := h.Info()
		if i.Cwd != "/src" {
			t.Errorf("cwd = %q, want /src: only a report with the nonce counts", i.Cwd)
		}
		if len(i.Title) > 4096 || !strings.HasPrefix(i.Title, "éé") {
			t.Errorf("title has %d bytes, want at most 4096 of the newest", len(i.Title))
		}
	})
}

// TestTextOffsetsFollowFromTheBytes feeds random streams in random pieces and checks that
// text offsets are positions in the text, in any pieces and from any start of a reader.
func TestTextOffsetsFollowFromTheBytes(t *testing.T) {
	pieces := []string{"plain text ", "\xff", "\xe2\x9c", "✓", "\x1b]633;A;n0\a", "\x1b[6n", "\x1b", "\x1b]52;c;", "aGk=", "\a",
		"\x1b]0;t\a", "\xc2", "\x9d633;B\x07", "\r\n", command("x", "y\r\n", 0), "\x1b[31mred\x1b[m", "\x00\x80\x80\x80"}
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var stream strings.Builder
		for range 200 {
			stream.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		synctest.Test(t, func(t *testing.T) { checkOffsets(t, seed, rnd, stream.String()) })
	}
}

func checkOffsets(t *testing.T, seed uint64, rnd *rand.Rand, stream string) {
	h, f, _ := start(t, term.Options{}, term.Spec{Nonce: nonce})
	live := reader(t, h, output.ReaderOptions{})
	var got []item
	for rest := stream; rest != ""; {
		n := 1 + rnd.IntN(min(len(rest), 300))
		f.Print(rest[:n])
		rest = rest[n:]
		synctest.Wait()
		got = append(got, events(t, live)...)
	}
	f.End(0)
	synctest.Wait()
	got = append(got, events(t, live)...)
	text := ""
	for _, e := range got {
		if e.Mark == 0 && e.Off != int64(len(text)) {
			t.Fatalf("seed %d: offset %d after %d bytes of text", seed, e.Off, len(text))
		}
		text += e.Data
	}
	late := reader(t, h, output.ReaderOptions{})
	for range 20 {
		at := rnd.Int64N(int64(len(text)) + 1)
		late.SeekText(at)
		rest, first := "", int64(-1)
		for _, e := range events(t, late) {
			if e.Mark == 0 && first < 0 {
				first = e.Off
			}
			rest += e.Data
		}
		if first < 0 {
			first = int64(len(text))
		}
		if first > at || at-first > 64 || rest != text[first:] {
			t.Fatalf("seed %d: from %d on: %d bytes at %d, want the text's tail", seed, at, len(rest), first)
		}
	}
}

// The secret of the marks is the person's alone: an agent that asks for every byte gets
// them without marks, wherever it begins.
func TestAgentsDoNotSeeTheNonce(t *testing.T) {
	const secret = "5e55107-5ecre7"
	printed := strings.ReplaceAll(command("ls", "file\r\n", 0)+command("false", "", 1), ";n0", ";"+secret)
	h, f, pool := start(t, term.Options{}, term.Spec{Nonce: secret})
	f.Print(printed)
	f.End(0)
	<-h.Done()
	for _, actor := range []term.Actor{term.User, term.Agent("claude")} {
		theirs := must.Get(pool.As(actor).Terminal(h.ID()))(t)
		for from := range len(printed) {
			r := reader(t, theirs, output.ReaderOptions{View: output.ViewRaw, From: int64(from)})
			data, _ := readAll(t, r)
			want := "$ ls\r\nfile\r\n$ false\r\n"
			switch {
			case actor == term.User && string(data) != printed[from:]:
				t.Fatalf("from %d the person reads %q", from, data)
			case actor != term.User && (strings.Contains(string(data), "5ecre7") || from == 0 && string(data) != want):
				t.Fatalf("from %d an agent reads %q", from, data)
			}
		}
	}
}

// Large pieces of a flood for a host end in front of a sequence, whether the buffer ends
// them or the output. What is left comes next.
func TestLargePiecesEndInFrontOfSequences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, child, _ := start(t, term.Options{}, term.Spec{})
		r := reader(t, h, output.ReaderOptions{View: output.ViewOutward})
		const one = "\x1b[1;31mred\x1b[0m\r\n"
		want := strings.Repeat(one, 4000)
		prints(child, want)
		var got strings.Builder
		for buf := make([]byte, 16<<10); ; {
			ev, ok, err := r.TryNext(buf)
			must.Do(t, err)
			if !ok {
				break
			}
			got.Write(ev.Data)
			if len(ev.Data) > 4<<10 && !strings.HasPrefix(want[got.Len():], "\x1b") {
				t.Errorf("a piece of %d bytes ends with %q", len(ev.Data), ev.Data[len(ev.Data)-8:])
			}
		}
		if got.String() != want {
			t.Errorf("%d of %d bytes came", got.Len(), len(want))
		}
	})
}
