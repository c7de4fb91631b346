package redact_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"tether/agent/redact"
	"tether/internal/testkit"
)

// A secret stays masked behind another one, also when the output pauses after it.
func TestSecretBehindAnotherBeforeAPause(t *testing.T) {
	const V = "sup3r-s3cret-v4lue-91"
	r := compile(t, redact.Options{Tokens: true}, V)
	for _, first := range []string{"AKIAIOSFODNN7EXAMPLQ", "glpat-x7Kd92LmQpZt4RvBn6Wc", "password=x7Kd92LmQpZt4RvB"} {
		for _, mid := range []string{"\r\n", "\n", "\r\nhello\r\n"} {
			for _, second := range []string{"MY=" + V, V, "api_key=q1We5Rt7Yu9Io2Pa4Sd6"} {
				got := shown(r, first+mid+second+"\r\n")
				if strings.Contains(got, V) || strings.Contains(got, "q1We5Rt7Yu9Io2Pa4Sd6") {
					t.Errorf("%q: %q", first+mid+second, got)
				}
			}
		}
	}
}

// A token stays masked behind a value that is alone on its line.
func TestTokenBehindAValueOnALineOfItsOwn(t *testing.T) {
	const v, token = "Zk3!vault-9fQx+77/aa", "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
	r := compile(t, redact.Options{Tokens: true}, v)
	for _, text := range []string{v + "\r\n" + token + "\r\ndone\r\n", v + "\r\n" + v + "\r\n" + token + "\r\ndone\r\n", v + "\n" + token + "\ndone\n"} {
		if got := shown(r, text); strings.Contains(got, token[8:]) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// All lines of a text that is no stream are masked, such as those of a command line.
func TestLinesOfOneText(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true}, "hunter2-value")
	const text, want = "run AKIAIOSFODNN7EXAMPLQ\nhunter2-value\nhunt", "run AKIA****************\n*************\nhunt"
	if got := r.Redact(text); got != want {
		t.Errorf("%q is shown as %q, want %q", text, got, want)
	}
}

// A part is a piece of a stream, and for a secret what of it is masked when it stands
// alone.
type part struct {
	text  string
	least []bool
}

// neighbours makes streams whose secrets must not unmask each other.
type neighbours struct {
	rules            *redact.Rules
	secrets          []part
	between, foreign []string // what separates secrets: text, line ends, moves, colours; other text
}

func newNeighbours(t testing.TB) *neighbours {
	random := rand.New(rand.NewPCG(71, 1))
	values := []string{"sup3r-s3cret-v4lue-91", "Zk3!vault-9fQx+77/aa", "correct horse battery", "hunter2-value", "first of two lines\nand the second"}
	n := &neighbours{rules: compile(t, redact.Options{Tokens: true}, values...)}
	for _, table := range []string{"recall-tokens.txt", "recall-named.txt", "recall-environment.txt"} {
		for _, c := range secretCases(t, table, random) {
			n.secrets = append(n.secrets, part{text: c.text()})
		}
	}
	for _, v := range values {
		for _, form := range []string{"%s", "MY=%s", "MY_TOKEN=%s", "password: %s", `{"note": "%s"}`} {
			n.secrets = append(n.secrets, part{text: fmt.Sprintf(form, v)})
		}
	}
	for i := range n.secrets {
		n.secrets[i].least = hiddenIn(n.rules, n.secrets[i].text+"\n. .\n")
	}
	n.between = []string{"\r\n", "\n", "\r\n\r\n", " ", "\t", ", ", "; ", " | ", "\" \"", "' '", ") (", "\r\nhello\r\n", "\r\n$ ", "\r\nx\r\ny\r\n", " \r", "\r",
		"\x1b[0m\r\n\x1b[32m", "\x1b[K\r\n", " \x1b[1m", "\x1b[0m ", // sequences inside a line and colours alone separate nothing
		"\x1b[C", "\x1b[3C", " \x1b[2C", "\x1b[24;1H", "\x1b[A\r", "\b", " \b", " \b\b ", "\x1b[D", "\x1b[2D  ", "\x1b[2D\x1b[2C"}
	n.foreign = append(innocent(), "password: ", `token="`, "okta: ", "authorization: bearer ", "MY_API_KEY=", `"secret": "`, "--password ", "--token=", "AKIA", "ghp_", "sk-", "hunter2",
		"sup3r-s3", "-----", "-----BEGIN ", "://", "https://x:", "eyJ", "x", "'", `"`, "'\r\n", "\"\r\n", "=", "Mailchimp API key ", "devops ", "plain words of a line ", strings.Repeat("a full line ", 6))
	return n
}

// hiddenIn says for each byte of a text whether it is part of a secret.
func hiddenIn(r *redact.Rules, text string) []bool {
	f := redact.NewFilter(r, 0)
	f.Feed([]byte(text))
	f.Flush()
	secrets, _ := f.Take()
	out := make([]bool, len(text))
	mark(out, secrets)
	return out
}

func mark(out []bool, masks []redact.Mask) {
	for _, m := range masks {
		for i := m.Start; i < m.End; i++ {
			out[i] = true
		}
	}
}

// A stream is a text with what must at least be masked, and the places at which its
// output pauses.
type stream struct {
	text   string
	least  []bool
	pauses []int
}

// stream puts secrets and other text behind each other.
func (n *neighbours) stream(random *rand.Rand, secrets []part) stream {
	var s stream
	var ends []int
	put := func(p part) {
		s.text += p.text
		s.least = append(s.least, make([]bool, len(p.text))...)
		copy(s.least[len(s.text)-len(p.text):], p.least)
		ends = append(ends, len(s.text))
	}
	for _, p := range secrets {
		if random.IntN(3) == 0 {
			put(part{text: n.foreign[random.IntN(len(n.foreign))]})
			put(part{text: n.between[random.IntN(len(n.between))]})
		}
		put(p)
		put(part{text: n.between[random.IntN(len(n.between))]})
	}
	often := random.IntN(3)
	for _, end := range ends {
		if random.IntN(4) < often {
			s.pauses = append(s.pauses, end)
		}
	}
	from, pauses := 0, s.pauses
	for line := range strings.Lines(s.text) {
		to := from + len(line)
		for len(pauses) > 0 && pauses[0] <= from {
			pauses = pauses[1:]
		}
		// A pause inside a line may be inside what the line's other text makes a secret.
		if len(pauses) == 0 || pauses[0] >= to {
			for i, is := range hiddenIn(n.rules, line+"\n. .\n")[:len(line)] {
				s.least[from+i] = s.least[from+i] || is
			}
		}
		from = to
	}
	return s
}

// unmasked returns the first offset of s that leaves although it must be masked, -1 if
// there is none, and how the stream was fed.
func (n *neighbours) unmasked(s stream, random *rand.Rand) (at int, how []int) {
	f, got := redact.NewFilter(n.rules, 0), make([]bool, len(s.text)+1)
	left, pauses := 0, s.pauses
	leave := func(to int64) bool {
		secrets, _ := f.Take()
		mark(got, secrets)
		for left < int(to) && (got[left] || !s.least[left]) {
			left++
		}
		return left == int(to)
	}
	size := []int{1, 1 + random.IntN(40), len(s.text)}[random.IntN(3)]
	for fed := 0; fed < len(s.text); {
		to := min(fed+size, len(s.text))
		for to < len(s.text) && !utf8.RuneStart(s.text[to]) {
			to++
		}
		pause := len(pauses) > 0 && pauses[0] <= to
		if pause {
			to, pauses = pauses[0], pauses[1:]
		}
		f.Feed([]byte(s.text[fed:to]))
		how, fed = append(how, to), to
		if pause {
			f.Flush()
		}
		if !leave(f.Decided()) {
			return left, how
		}
	}
	if f.Flush(); !leave(int64(len(s.text))) {
		return left, how
	}
	return -1, nil
}

// Text around a secret never unmasks it: of a stream at least that is masked which is
// masked of each of its lines alone and of each secret alone, for every division, and for
// pauses at line ends and between secrets. Every two secrets of the tables are neighbours
// once.
func TestNeighboursUnmaskNothing(t *testing.T) {
	n := newNeighbours(t)
	secrets := len(n.secrets)
	n.test(t, testkit.Load(5_000, 250), func(k int, random *rand.Rand) (of []part) {
		// The middle one stands behind each whose index is even with its own, and in
		// front of each other.
		middle, other := k/2%secrets, (k/2/secrets*2+k%2)%secrets
		first, last := (middle+other*2)%secrets, (middle+other*2+1)%secrets
		for _, i := range []int{first, middle, last, random.IntN(secrets)}[:3+random.IntN(2)] {
			of = append(of, n.secrets[i])
		}
		return of
	})
}

// The same where text is longer than what is held back, and where a private key has no
// end.
func TestLongNeighboursUnmaskNothing(t *testing.T) {
	n := newNeighbours(t)
	n.foreign = append(n.foreign, strings.Repeat("words of a long line ", 150), strings.Repeat("A", 3000), `"secret": "`+strings.Repeat("much text, ", 200), "ghp_"+strings.Repeat("wW1", 1300),
		"-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("MIIEabc9\n", 400), strings.Repeat("\x1b[31m", 12_000), "key-", "LS0tLS1CRUdJTiBQUklWQVRFIEtFW", "Private-Lines: 1\nAAAA")
	for range 20 {
		n.foreign = append(n.foreign, n.foreign[len(n.foreign)-10:]...)
	}
	n.test(t, testkit.Load(500, 30), func(_ int, random *rand.Rand) (of []part) {
		for range 1 + random.IntN(5) {
			of = append(of, n.secrets[random.IntN(len(n.secrets))])
		}
		return of
	})
}

// test makes count streams, each of the secrets that choose returns, and looks for
// secrets that leave.
func (n *neighbours) test(t *testing.T, count int, choose func(int, *rand.Rand) []part) {
	for round := range testkit.Rounds(t, 1, 1000) {
		var wait sync.WaitGroup
		workers := runtime.GOMAXPROCS(0)
		for worker := range workers {
			wait.Go(func() {
				for k := worker; k < count && !t.Failed(); k += workers {
					random := rand.New(rand.NewPCG(uint64(round), uint64(k)))
					s := n.stream(random, choose(k, random))
					if at, how := n.unmasked(s, random); at >= 0 {
						t.Errorf("…%q\nleaves unmasked from %d on: %q; pauses at %d, fed up to %d", s.text[max(at-300, 0):], at, s.text[at:min(at+40, len(s.text))], s.pauses, how)
					}
				}
			})
		}
		wait.Wait()
	}
}
