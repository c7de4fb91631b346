package main

import (
	"context"
	"fmt"
	"time"

	"tether/agent/redact"
)

const (
	floorRedaction     = 0.2 // GB/s of coloured output
	floorRedactionEcho = 0.3 // ms that redaction adds to the echo of a key

	redactRead = 32 << 10 // bytes that the terminal's pump reads at most
)

// secretsOfSome are made-up secrets, such as a developer's environment has.
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
			r = r.least(floorRedaction)
		}
		rows = append(rows, r, row{Part: "redaction", Name: c.name + ", reads of 4,095 bytes", Value: rate(ptyRead), Unit: "GB/s"})
	}
	took := redactionEcho(rules, s.keys*10)
	rows = append(rows, row{Part: "redaction", Name: "added to the echo of a key, p50", Value: quantile(took, 0.5), Unit: "ms"},
		row{Part: "redaction", Name: "added to the echo of a key, p99", Value: quantile(took, 0.99), Unit: "ms"}.most(floorRedactionEcho))
	return append(rows, row{Part: "redaction", Name: "rules for the values of an environment", Value: millis(made), Unit: "ms", Note: "once for each"}), nil
}

// redactionEcho measures redaction of the echo of one key with the sequences that a shell prints around it, in ms. Nothing looks like a secret.
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
