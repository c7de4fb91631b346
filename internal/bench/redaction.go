package main

import (
	"context"
	"fmt"
	"time"

	"tether/agent/redact"
)

// The planned floors: secrets and sequences of coloured output are looked for at this rate, in GB/s, and delay a key's echo by no more than
// this, in ms.
const (
	floorVeil          = 0.2
	floorRedactionEcho = 0.3

	redactRead = 32 << 10 // upper bound of a read by the terminal's pump
)

// secretsOfSome are values as a developer's environment has them. They are made up.
var secretsOfSome = []string{"correct-horse-battery-staple", "postgres://app:pass@db/x", "0123456789abcdef0123456789abcdef", "Zm9vYmFyYmF6"}

// redactionPart compares redaction for hosts with copying the same reads, and measures its addition to the echo of a key.
func redactionPart(_ context.Context, s settings) ([]row, error) {
	base, err := redact.Compile(redact.Options{Tokens: true, Images: 2 << 20})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	rules, _ := base.With(secretsOfSome)
	made := time.Since(began)
	var rows []row
	dst := make([]byte, redactRead)
	for _, c := range corpora {
		data := repeat(onTerminal(c.block()), s.scanned*1e6)
		memcpy := best(s.rounds, data, redactRead, func() func([]byte) { return func(p []byte) { copy(dst, p) } })
		rate := func(read int) float64 {
			return best(s.rounds, data, read, func() func([]byte) {
				f := redact.NewFilter(rules, 0)
				return func(p []byte) { f.Feed(p); f.Take() }
			})
		}
		r := row{Part: "redaction", Name: c.name, Value: rate(redactRead), Unit: "GB/s"}
		r.Note = fmt.Sprintf("memcpy %s, ratio %s", digits(memcpy), digits(r.Value/memcpy))
		if c.name == "coloured" {
			r = r.least(floorVeil)
		}
		rows = append(rows, r, row{Part: "redaction", Name: c.name + ", reads of 4,095 bytes", Value: rate(ptyRead), Unit: "GB/s"})
	}
	took := redactionEcho(rules, s.keys*10)
	rows = append(rows, row{Part: "redaction", Name: "added to the echo of a key, p50", Value: quantile(took, 0.5), Unit: "ms"},
		row{Part: "redaction", Name: "added to the echo of a key, p99", Value: quantile(took, 0.99), Unit: "ms"}.most(floorRedactionEcho))
	return append(rows, row{Part: "redaction", Name: "rules for the values of an environment", Value: millis(made), Unit: "ms", Note: "once for each"}), nil
}

// redactionEcho is the time of redaction for one key and the shell's output around it, in ms, if nothing looks like a secret.
func redactionEcho(rules *redact.Rules, keys int) []float64 {
	f := redact.NewFilter(rules, 0)
	took := make([]float64, 0, keys)
	for n := range keys {
		p := []byte("\x1b[1m" + string(rune('0'+n%10)) + "\x1b[0m\x1b[K")
		began := time.Now()
		f.Feed(p)
		f.Take()
		_ = f.Decided()
		took = append(took, millis(time.Since(began)))
	}
	return took
}
