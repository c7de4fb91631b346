package testkit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/internal/testkit/must"
)

// FloodLine returns line n of the flood, counted from 0: the number, a checksum of number
// and text, and the text. Length and content of the text follow from the number; it has
// characters of one to four bytes, and colours. The line ends in CR LF, as a pty writes
// it.
func FloodLine(n int) string {
	random := rand.New(rand.NewPCG(uint64(n), 0xf100d))
	var b strings.Builder
	for range random.IntN(24) {
		b.WriteString(floodWords[random.IntN(len(floodWords))])
	}
	return fmt.Sprintf("%d %08x %s\r\n", n, floodSum(n, b.String()), b.String())
}

var floodWords = [...]string{"make ", "é", "目录", "🙂", "0123456789", "\x1b[31m", "\x1b[0m", "\t", "[ok] ", "a\tb", "…", "\"\\/ "}

func floodSum(n int, text string) uint32 {
	return crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %s", n, text))
}

// Flood is a position in the endless stream of all flood lines; the zero value is at its
// start. Not safe for concurrent use.
type Flood struct {
	next int // number of the line after rest
	rest string
	off  int64
}

// Offset is the position in the stream, in bytes.
func (f *Flood) Offset() int64 { return f.off }

// Next returns the next 1 to max bytes and moves past them. They may end within a
// character or a line. max must be at least 1.
func (f *Flood) Next(max int) string {
	if f.rest == "" {
		f.rest = FloodLine(f.next)
		f.next++
	}
	p := f.rest[:min(max, len(f.rest))]
	f.rest = f.rest[len(p):]
	f.off += int64(len(p))
	return p
}

// Skip moves n bytes forward.
func (f *Flood) Skip(n int64) {
	for n > 0 {
		n -= int64(len(f.Next(int(min(n, 1<<20)))))
	}
}

// FloodCheck compares written bytes with the flood; the zero value expects the start of
// the flood. A write after an error returns that error again. Not safe for concurrent
// use.
type FloodCheck struct {
	want Flood
	err  error
	cut  error // the last bytes may replace a cut character: it becomes err if more than a replacement follows
}

// Offset is the number of bytes from the start of the flood that were right or skipped.
func (c *FloodCheck) Offset() int64 { return c.want.Offset() }

// Skip expects that the next n bytes do not come.
func (c *FloodCheck) Skip(n int64) { c.want.Skip(n) }

// Ended returns an error unless the written bytes are a flood that ended after n bytes:
// at Offset, or within the next character, which text then shows as U+FFFD.
func (c *FloodCheck) Ended(n int64) error {
	if c.err != nil {
		return c.err
	}
	left, rest := n-c.Offset(), c.want
	if left == 0 && c.cut == nil || c.cut != nil && left > 0 && left < utf8.UTFMax && !utf8.FullRuneInString(rest.Next(int(left))) {
		return nil
	}
	return errors.Join(fmt.Errorf("%d bytes of %d", c.Offset(), n), c.cut)
}

// Write implements io.Writer. The error shows the received and the expected bytes, and
// the line that the received bytes seem to be from.
func (c *FloodCheck) Write(p []byte) (int, error) {
	if c.err == nil && len(p) > 0 && !(c.cut != nil && isCut(p)) {
		c.err = c.cut // it has not ended
	}
	if c.err == nil && c.cut != nil {
		return len(p), nil
	}
	for done := 0; c.err == nil && done < len(p); {
		before := c.want
		want := c.want.Next(len(p) - done)
		if string(p[done:done+len(want)]) == want {
			done += len(want)
			continue
		}
		same := commonPrefix(p[done:], want)
		c.want = before
		c.want.Skip(int64(same))
		err := fmt.Errorf("at offset %d, in line %d: got %.80q%s, want %.80q",
			c.Offset(), before.line(), p[done+same:], cameFrom(p[done+same:]), want[same:])
		if isCut(p[done+same:]) {
			c.cut = err
			return len(p), nil
		}
		c.err = err
	}
	if c.err != nil {
		return 0, c.err
	}
	return len(p), nil
}

// isCut reports whether p may replace a part of a character: one U+FFFD for the part, or
// one for each of its bytes.
func isCut(p []byte) bool {
	n := bytes.Count(p, []byte(string(utf8.RuneError)))
	return n > 0 && n < utf8.UTFMax && n*utf8.RuneLen(utf8.RuneError) == len(p)
}

// line is the number of the line with the next byte.
func (f *Flood) line() int {
	if f.rest == "" {
		return f.next
	}
	return f.next - 1
}

func commonPrefix(p []byte, s string) int {
	n := 0
	for n < len(p) && n < len(s) && p[n] == s[n] {
		n++
	}
	return n
}

// cameFrom names the first whole line of the flood in p.
func cameFrom(p []byte) string {
	for line := range bytes.Lines(p) {
		number, rest, _ := strings.Cut(string(line), " ")
		if n, err := strconv.Atoi(number); err == nil && rest != "" && string(line) == FloodLine(n) {
			return fmt.Sprintf(" (before line %d)", n)
		}
	}
	return ""
}

// CheckFlood checks text that starts where the flood starts. Parts may be missing where a
// line of tether-host says how many bytes are missing. It returns the sizes of these gaps
// and the position in the flood at the end of text.
func CheckFlood(text string) (gaps []int64, end int64, err error) {
	const before, after = "\r\n[tether: ", " bytes of output are missing here]\r\n"
	var c FloodCheck
	for {
		part, rest, found := strings.Cut(text, before)
		if _, err := c.Write([]byte(part)); err != nil || !found {
			return gaps, c.Offset(), err
		}
		count, rest, _ := strings.Cut(rest, after)
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			return gaps, c.Offset(), fmt.Errorf("at offset %d: a gap of %.20q bytes", c.Offset(), count)
		}
		gaps = append(gaps, n)
		c.Skip(n)
		text = rest
	}
}

// floodWord makes Main print the flood instead of running tests.
const floodWord = "testkit-flood"

// FloodCommand returns a command that prints that many lines of the flood, or the endless
// flood if lines is 0, and exits with code. The command is the test program itself, whose
// TestMain must be Main.
func FloodCommand(t testing.TB, lines, code int) []string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	return []string{self, floodWord, strconv.Itoa(lines), strconv.Itoa(code)}
}

// Main is the TestMain of a package whose tests use FloodCommand: func TestMain(m
// *testing.M) { os.Exit(testkit.Main(m)) }.
func Main(m interface{ Run() int }) int {
	if len(os.Args) != 4 || os.Args[1] != floodWord {
		return m.Run()
	}
	lines, _ := strconv.Atoi(os.Args[2])
	code, _ := strconv.Atoi(os.Args[3])
	if printFlood(os.Stdout, lines) != nil {
		return 1 // nobody reads any more
	}
	return code
}

// printFlood writes the flood with LF at line ends; the pty makes CR LF of that.
func printFlood(w io.Writer, lines int) error {
	b := bufio.NewWriterSize(w, 32<<10)
	for n := 0; lines == 0 || n < lines; n++ {
		if _, err := b.WriteString(strings.ReplaceAll(FloodLine(n), "\r\n", "\n")); err != nil {
			return err
		}
	}
	return b.Flush()
}
