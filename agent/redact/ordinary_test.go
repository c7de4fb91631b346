package redact_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// kind is the output of one program: templates of lines.
type kind struct {
	name  string
	lines []template
}

// template is a line: texts, and the fillings of the gaps between them.
type template []struct {
	text, gap string
	n         int
}

func parseTemplate(line string) (t template) {
	for len(line) > 0 {
		at := gap.FindStringSubmatchIndex(line)
		if at == nil {
			at = []int{len(line), len(line), 0, 0, -1, -1}
		}
		part := struct {
			text, gap string
			n         int
		}{text: line[:at[0]], gap: line[at[2]:at[3]]}
		if at[0] == len(line) {
			part.gap = ""
		}
		if at[4] >= 0 {
			part.n, _ = strconv.Atoi(line[at[4]:at[5]])
		}
		t, line = append(t, part), line[at[1]:]
	}
	return t
}

func ordinary(t testing.TB) (all []kind) {
	t.Helper()
	table := must.Get(os.ReadFile("testdata/ordinary.txt"))(t)
	for line := range strings.Lines(string(table)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "= "):
			all = append(all, kind{name: line[2:]})
		case len(all) > 0:
			all[len(all)-1].lines = append(all[len(all)-1].lines, parseTemplate(line))
		}
	}
	return all
}

var (
	gap = regexp.MustCompile(`\{(hex|b64|url64|up|low|int|word|path|uuid|ver|ip|time|date|ms)(?::(\d+))?\}`)
	// ordinaryWords are parts of names.
	ordinaryWords = strings.Fields(`core util app web api server client common shared token auth secret passport session cookie key cache queue worker model view router store
		parser lexer buffer stream socket crypto hash random config logger metrics trace graph table index query schema alpha beta gamma delta north south river stone
		tokens password credential vault keyring sign verify access user account login admin public private test mock data service handler format string number`)
)

const (
	digits, small, large = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	hexes                = digits + "abcdef"
	base64Letters        = digits + small + large + "+/"
	urlLetters           = digits + small + large + "_-"
)

// letterPools are long random texts of these letters: to make each letter anew takes long
// with the race detector.
var letterPools = func() map[string]string {
	random, all := rand.New(rand.NewPCG(43, 1)), map[string]string{}
	for _, letters := range []string{digits, hexes, base64Letters, urlLetters, digits + large, digits + small} {
		p := make([]byte, 64<<10)
		for i := range p {
			p[i] = letters[random.IntN(len(letters))]
		}
		all[letters] = string(p)
	}
	return all
}()

// fill appends a template to b, with something in each gap.
func (t template) fill(b []byte, random *rand.Rand) []byte {
	from := func(letters string, n int) {
		pool := letterPools[letters]
		at := random.IntN(len(pool) - n)
		b = append(b, pool[at:at+n]...)
	}
	word := func() { b = append(b, ordinaryWords[random.IntN(len(ordinaryWords))]...) }
	for _, p := range t {
		b = append(b, p.text...)
		switch p.gap {
		case "hex":
			from(hexes, p.n)
		case "b64":
			from(base64Letters, p.n)
		case "url64":
			from(urlLetters, p.n)
		case "up":
			from(digits+large, p.n)
		case "low":
			from(digits+small, p.n)
		case "int":
			b = append(b, byte('1'+random.IntN(9)))
			from(digits, random.IntN(max(p.n, 1)))
		case "word":
			word()
		case "path":
			word()
			b = append(b, '/')
			word()
			b = append(b, '_')
			word()
		case "uuid":
			for i, n := range []int{8, 4, 3, 3, 12} {
				b = append(b, []string{"", "-", "-4", "-a", "-"}[i]...)
				from(hexes, n)
			}
		case "ver":
			b = fmt.Appendf(b, "%d.%d.%d", random.IntN(30), random.IntN(20), random.IntN(40))
		case "ip":
			b = fmt.Appendf(b, "10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256))
		case "time":
			b = fmt.Appendf(b, "%02d:%02d:%02d", random.IntN(24), random.IntN(60), random.IntN(60))
		case "date":
			b = fmt.Appendf(b, "Jan %2d", 1+random.IntN(28))
		case "ms":
			b = strconv.AppendInt(b, random.Int64N(5000), 10)
		}
	}
	return append(b, "\r\n"...)
}

// Ordinary output stays unchanged: at most one false alarm in 10 MB of at least 40 kinds
// (a soak makes more).
func TestFalseAlarms(t *testing.T) {
	kinds, r := ordinary(t), compile(t, redact.Options{Tokens: true})
	if len(kinds) < 40 {
		t.Errorf("%d kinds", len(kinds))
	}
	size := testkit.Load(4<<20, 1<<19)
	for round := range testkit.Rounds(t, 1, 1000) {
		random := rand.New(rand.NewPCG(41, uint64(round)))
		n, alarms, seen := 0, []string(nil), map[string]int{}
		f, b := redact.NewFilter(r, 0), []byte(nil)
		for n < size {
			k := kinds[random.IntN(len(kinds))]
			b = b[:0]
			for range 40 {
				b = k.lines[random.IntN(len(k.lines))].fill(b, random)
			}
			f.Feed(b)
			text := string(b)
			f.Flush()
			secrets, _ := f.Take()
			for _, m := range secrets {
				from := strings.LastIndex(text[:m.Start-int64(n)], "\n") + 1
				seen[k.name]++
				if seen[k.name] > 3 {
					continue // the first ones show the cause
				}
				alarms = append(alarms, fmt.Sprintf("%s: %q in %q", k.name, text[m.Start-int64(n):m.End-int64(n)], text[from:min(from+200, len(text))]))
			}
			n += len(text)
		}
		if len(alarms) > 1 {
			t.Errorf("false alarms in %d bytes: %v\n%s", n, seen, strings.Join(alarms, "\n"))
		}
	}
}
