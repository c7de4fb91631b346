package redact_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit"
)

// An interruption is text inside a secret that is not part of it.
type interruption struct {
	name, bytes string
	over        int  // columns that a move forward passes over, which are not printed
	again       int  // characters of the secret that are printed anew behind it; -1: it takes nothing back
	corrected   bool // other characters are printed, and taken back
	wrap        bool
}

func interruptions(t testing.TB) (all []interruption) {
	t.Helper()
	for _, fields := range testkit.Table(t, "inside.txt", 3, 37) {
		bytes, err := strconv.Unquote(`"` + fields[2] + `"`)
		if err != nil {
			t.Fatalf("%q: %v", fields, err)
		}
		at := interruption{name: fields[0], bytes: bytes, wrap: fields[1] == "wrap", again: -1}
		if n, ok := strings.CutPrefix(fields[1], "forward "); ok {
			at.over, _ = strconv.Atoi(n)
		}
		if n, ok := strings.CutPrefix(fields[1], "retyped "); ok {
			at.again, _ = strconv.Atoi(n)
		}
		if at.corrected = fields[1] == "corrected"; at.corrected {
			at.again = 0
		}
		all = append(all, at)
	}
	return all
}

// What happens to a byte of an interrupted text.
const (
	stays = iota
	masked
	either // a character that is taken back
)

// put interrupts a text at a place. becomes says for each byte of the result what happens
// to it if text[from:to] is secret.
func (i interruption) put(text string, at, from, to int) (out string, becomes []int) {
	add := func(begin, end int) {
		for k := begin; k < end; k++ {
			out += text[k : k+1]
			if k >= from && k < to {
				becomes = append(becomes, masked)
			} else {
				becomes = append(becomes, stays)
			}
		}
	}
	add(0, at)
	out += i.bytes
	of := stays
	if i.again >= 0 {
		of = either
	}
	for range len(i.bytes) {
		becomes = append(becomes, of)
	}
	add(at+i.over-max(i.again, 0), len(text))
	return out, becomes
}

// A secret is found although other bytes lie inside it, at any place behind its first
// bytes and in any division, and those bytes stay.
func TestSecretsThroughSequences(t *testing.T) {
	random := rand.New(rand.NewPCG(51, 1))
	for range testkit.Rounds(t, 1, 10) {
		findInterrupted(t, random)
	}
}

// findInterrupted looks for a secret of each kind behind each interruption.
func findInterrupted(t *testing.T, random *rand.Rand) {
	t.Helper()
	const value = "hunter2-postgres-password"
	r := compile(t, redact.Options{Tokens: true}, value)
	for _, c := range []struct {
		name, before, prefix, secret, after string
		wraps, open                         bool // a line's end is bridged; it may be complete before its end
	}{
		{"token", "the key ", "ghp_", made(t, `[A-Za-z0-9]{36}`, random), " is set\r\n", true, false},
		{"token with dashes", "key: ", "glpat-", made(t, `[A-Za-z0-9]{20}`, random), "\r\n$ ", true, false},
		{"value", "login as ", "", value, " now\r\n", true, false},
		{"named value", "password: ", "", made(t, `[a-z]{5}[0-9]{4}[a-z]{6}`, random), "\r\n", false, false},
		{"named value in JSON", `{"secret": "`, "", made(t, `[A-Za-z]{9}[0-9]{4}[a-z]{6}`, random), "\"}\r\n", false, false},
		{"header", "authorization: bearer ", "", made(t, `[A-Za-z0-9]{30}`, random), "\r\n", true, true},
		{"password in a URL", "postgres://app:", "", made(t, `[a-z]{5}[0-9]{4}[a-z]{6}`, random), "@db/x\r\n", false, false},
	} {
		for _, in := range interruptions(t) {
			first := len(c.before)
			switch {
			case in.wrap && !c.wraps, in.corrected && c.name == "value": // a value is looked for only unchanged
				continue
			case in.wrap, in.over > 0, in.again >= 0, strings.HasPrefix(in.name, "forward"):
				first += max(len(c.prefix), 3) + max(in.again, 0)
			}
			if in.wrap {
				c.before, first = strings.Repeat("the line is full ", 4)+c.before, first+4*17
			}
			text, to := c.before+c.prefix+c.secret+c.after, len(c.before+c.prefix+c.secret)
			step := testkit.Load(4, 16)
			for n, at := 0, first+random.IntN(step); at < to; n, at = n+1, at+step {
				if in.wrap && c.open && at > to-8 {
					break // a word of fewer characters may be anything
				}
				if in.over > 0 && at+in.over > to {
					break
				}
				whole, becomes := in.put(text, at, len(c.before+c.prefix), to)
				got := shown(r, whole)
				for i := range whole {
					if want := whole[i]; becomes[i] == masked && got[i] != '*' || becomes[i] == stays && got[i] != want && want != ' ' || want < ' ' && got[i] != want {
						t.Errorf("%s, %s at %d: %q is shown as %q", c.name, in.name, at-len(c.before), whole, got)
						break
					}
				}
				if n%4 > 0 && !testkit.Soaking() {
					continue
				}
				for cut := at % 5; cut < len(whole); cut += 5 {
					first := cut
					if again := inPieces(t, r, whole, func(rest string) int { return cutOnce(&first, rest) }); again != got {
						t.Fatalf("%q\nis shown as    %q\ndivided at %d %q", whole, got, cut, again)
					}
				}
				if again := inPieces(t, r, whole, func(string) int { return 1 }); again != got {
					t.Fatalf("%q\nis shown as   %q\nbyte by byte  %q", whole, got, again)
				}
				if again := inPieces(t, r, whole, randomCut(random)); again != got {
					t.Fatalf("%q\nis shown as   %q\nin pieces     %q", whole, got, again)
				}
			}
		}
	}
}
