package screen_test

import (
	"strings"
	"testing"

	"tether/screen"
)

func TestModes(t *testing.T) {
	for _, c := range []struct{ name, printed, want string }{
		{"nothing", "plain text", ""},
		{"alternate screen", "\x1b[?1049hx", "\x1b[?1049l"},
		{"left again", "\x1b[?1049hx\x1b[?1049l", ""},
		{"hidden cursor", "\x1b[?25l", "\x1b[?25h"},
		{"last first", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"},
		{"several at once", "\x1b[?1000;1006h", "\x1b[?1006l\x1b[?1000l"},
		{"twice", "\x1b[?2004h\x1b[?2004h", "\x1b[?2004l"},
		{"unknown mode", "\x1b[?777h", "\x1b[?777l"},
		{"number that is no mode", "\x1b[?99999h", ""},
		{"not private", "\x1b[25l", ""},
		{"colour", "\x1b[31mred", "\x1b[0m"},
		{"colour reset", "\x1b[1;31mred\x1b[m", ""},
		{"colour reset in full", "\x1b[31mred\x1b[0m", ""},
		{"full reset", "\x1b[?1049h\x1b[31m\x1bc", ""},
		{"unfinished", "\x1b[?10", "\x18"},
		{"overlong", "\x1b[?" + strings.Repeat("1", 100) + "h", ""},
		{"interrupted", "\x1b[?\x1b[?25l", "\x1b[?25h"},
		{"other escape", "\x1b(B\x1b7", ""},
		{"unfinished intermediate", "\x1b(", "\x18"},
		{"unfinished title", "\x1b]2;tit", "\x18"},
		{"title to BEL", "\x1b]2;title\x07", ""},
		{"title to ST", "\x1b]2;title\x1b\\", ""},
		{"unfinished image", "\x1bPq#0;2;0\x07", "\x18"},
		{"image", "\x1bPq#0;2;0\x1b\\", ""},
		{"cancelled", "\x1b]2;tit\x18\x1b[?25\x1a", ""},
		{"control within a sequence", "\x1b[?2\n5l", "\x1b[?25h"},
		{"unfinished with another prefix", "\x1b[>4;2", "\x18"},
		{"another prefix", "\x1b[>4;2m\x1b[?25$p", "\x1b[>4m"},
		{"kitty's keyboard", "\x1b[>1u\x1b[>15u", "\x1b[<2u"},
		{"kitty's keyboard, popped", "\x1b[>1u\x1b[>15u\x1b[<2u", ""},
		{"kitty's keyboard, popped too often", "\x1b[=1u\x1b[>1u\x1b[<9u", ""},
		{"kitty's keyboard, pushed often", strings.Repeat("\x1b[>1u", 20) + "\x1b[<3u", "\x1b[<17u"},
		{"kitty's keyboard, set", "\x1b[=5u", "\x1b[=0u"},
		{"kitty's keyboard, changed", "\x1b[=5u\x1b[=4;3u\x1b[=1;3u", ""},
		{"kitty's keyboard on both screens", "\x1b[>1u\x1b[?1049h\x1b[>7u\x1b[=1;2u", "\x1b[<1u\x1b[?1049l\x1b[<1u"},
		{"kitty's keyboard on the hidden screen", "\x1b[?1049h\x1b[>7u\x1b[?1049l", "\x1b[?47h\x1b[<1u\x1b[?47l"},
		{"modifyOtherKeys", "\x1b[>4;1m", "\x1b[>4m"},
		{"modifyOtherKeys, reset", "\x1b[>4;2m\x1b[>4;m\x1b[>4;2m\x1b[>4m\x1b[>4;2m\x1b[>m", ""},
		{"modifiers of other keys", "\x1b[>1;3m\x1b[>2n\x1b[>4;1f", "\x1b[>4f\x1b[>2m\x1b[>1m"},
		{"win32 input", "\x1b[?9001h", "\x1b[?9001l"},
		{"insert mode", "\x1b[4h", "\x1b[4l"},
		{"modes without ?", "\x1b[2h\x1b[12l\x1b[20h", "\x1b[12h\x1b[2l\x1b[20l"},
		{"scroll region", "\x1b[3;10r", "\x1b7\x1b[r\x1b8"},
		{"scroll region, reset", "\x1b[3;10r\x1b[r", ""},
		{"scroll region and reset", "\x1b[3;10r\x1b[!p", ""},
		{"left and right margins", "\x1b[?69h\x1b[3;9s", "\x1b[?69l"},
		{"line drawing", "\x1b(0", "\x1b(B"},
		{"line drawing shifted in", "\x1b)0\x0e", "\x1b)B\x0f"},
		{"other sets", "\x1b(K\x1b.A\x1b(%5", "\x1b(B\x1b*B"},
		{"set that came back with a cursor", "\x1b(0\x1b7\x1b(B\x1b8", "\x0f"},
		{"keypad", "\x1b=", "\x1b[?66l"},
		{"keypad, off", "\x1b=\x1b>", ""},
		{"reverse video", "\x1b[?5h", "\x1b[?5l"},
		{"origin", "\x1b[?6h", "\x1b[?6l\x1b[999;1H"},
		{"cursor shape", "\x1b[5 q", "\x1b[0 q"},
		{"cursor shape and soft reset", "\x1b[5 q\x1b[!p", "\x1b[0 q"},
		{"cursor blink", "\x1b[?12;25h", "\x1b[?12l"},
		{"reports of colours and sizes", "\x1b[?2031h\x1b[?2048h", "\x1b[?2048l\x1b[?2031l"},
		{"modes that are usually on", "\x1b[?1007l\x1b[?1034h", "\x1b[?1007h"},
		{"restored modes", "\x1b[?1000h\x1b[?1000;25s\x1b[?1000l\x1b[?1000;25r", "\x1b[?1000l"},
		{"restored and reset", "\x1b[?1000r\x1b[?1000l", ""},
		{"link", "\x1b]8;;http://x\x1b\\x", "\x1b]8;;\x1b\\"},
		{"link, ended", "\x1b]8;;http://x\x1b\\x\x1b]8;;\a", ""},
		{"progress", "\x1b]9;4;1;50\a", "\x1b]9;4;0\x1b\\"},
		{"progress, ended", "\x1b]9;4;3\a\x1b]9;4;0;\a", ""},
		{"notification", "\x1b]9;hello\a", ""},
		{"colours", "\x1b]11;#fff\a\x1b]4;1;red;7;?;300;blue\a", "\x1b]104;300\x1b\\\x1b]104;1\x1b\\\x1b]111\x1b\\"},
		{"colours in a row", "\x1b]10;#fff;?;red\a", "\x1b]112\x1b\\\x1b]110\x1b\\"},
		{"colours, reset", "\x1b]11;#fff\a\x1b]4;1;red;2;blue\a\x1b]104;1;2\a\x1b]111\a", ""},
		{"a whole palette", "\x1b]4;" + strings.Repeat("1;rgb:00/00/00;", 300) + "\a", "\x1b]104\x1b\\"},
		{"kitty's colours", "\x1b]21;cursor=red\a", "\x1b]21;foreground;background;cursor;cursor_text;selection_foreground;selection_background\x1b\\"},
		{"pointer", "\x1b]22;wait\a\x1b[>2p", "\x1b[>1p\x1b]22;\x1b\\"},
		{"font", "\x1b]50;fixed\a", "\x1b]50;#0\x1b\\"},
		{"printing", "\x1b[5i", "\x1b[4i"},
		{"8-bit controls", "\x1b G", "\x1b F"},
		{"no UTF-8", "\x1b%@", "\x1b%G"},
		{"texts of keys", "\x1bP1;1|17/6c730d\x1b\\", "\x1bP0;1|\x1b\\"},
		{"sixels with a /", "\x1bPq#0;2/~|1/2\x1b\\", ""},
		{"tab stops", "\x1b[3g\x1b[5C\x1bH", "\x1b[?5W"},
		{"status line", "\x1b[2$~\x1b[1$}", "\x1b[0$}\x1b[0$~"},
		{"title modes", "\x1b[>2;3t", "\x1b[>3T\x1b[>2T"},
		{"VT52", "\x1b[?2l", "\x1b<"},
		{"protection", "\x1b[1\"q", "\x1b[0\"q"},
		{"older alternate screen", "\x1b[?47h", "\x1b[?47l"},
		{"alternate screen drawn again", "\x1b7\x1b[?47h", "\x1b[?1049l"},
		{"everything of vim", "\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;24r\x1b[?12h\x1b[?12l\x1b[27m\x1b[m\x1b[H\x1b[2J\x1b[?25l" +
			"\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[>4;m\x1b[?1049l\x1b[r\x1b[?25h", ""},
	} {
		var m screen.Modes
		for i := range len(c.printed) {
			m.Write([]byte{c.printed[i]})
		}
		if got := string(m.Restore()); got != c.want {
			t.Errorf("%s, byte by byte: %q, want %q", c.name, got, c.want)
		}
		m.Write([]byte(c.printed))
		if got := string(m.Restore()); got != c.want {
			t.Errorf("%s, at once: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[31mx\x1b[?25l"), 7)
	f.Add([]byte("\x1b[>1u\x1b[?2048h\x1b]11;#fff\a\x1bP1|17/61\x1b\\\x1b(K\x1b[3;4r\x1b[?6h\x1b]4;1;red\a\x1b[?1000r"), 9)
	f.Fuzz(func(t *testing.T, printed []byte, at int) {
		var whole, parts screen.Modes
		whole.Write(printed)
		at = min(max(at, 0), len(printed))
		parts.Write(printed[:at])
		parts.Write(printed[at:])
		a, b := whole.Restore(), parts.Restore()
		if string(a) != string(b) {
			t.Errorf("%q split at %d: %q and %q", printed, at, a, b)
		}
		whole.Write(printed)
		whole.Write(a)
		if left := whole.Restore(); len(left) > 0 {
			t.Errorf("%q put back by %q leaves %q", printed, a, left)
		}
	})
}
