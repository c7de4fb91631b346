package main

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"tether/shellint"
)

const (
	floorScanner = 4.0 // GB/s
	floorMarks   = 0.7 // GB/s of output that has only marks

	// referenceWide is the rate, in GB/s, at which the processor where the floors were set checks text of wide characters. The check goes byte
	// by byte, so that only the processor's clock limits it.
	referenceWide = 1.9

	scanRead = 64 << 10 // bytes that a busy pump reads at most
	ptyRead  = 4095     // bytes that Linux returns from a pty at most
)

// scannerPart measures the scanner, and copying of the same reads.
func scannerPart(_ context.Context, s settings) ([]row, error) {
	dst := make([]byte, scanRead)
	wide := repeat([]byte("端末の出力"), s.scanned*1e6) // three bytes each, so that no read cuts one
	check := best(s.rounds, wide, scanRead/4*3, func() func([]byte) { return func(p []byte) { utf8.Valid(p) } })
	rows := []row{{Part: "scanner", Name: "checking wide characters, for comparison", Value: check, Unit: "GB/s"}}
	for _, c := range corpora {
		data := repeat(onTerminal(c.block()), s.scanned*1e6)
		memcpy := best(s.rounds, data, scanRead, func() func([]byte) { return func(p []byte) { copy(dst, p) } })
		scan := func(read int, queries bool) float64 {
			return best(s.rounds, data, read, func() func([]byte) {
				sc := shellint.NewScanner(shellint.Options{Nonce: nonce, Queries: queries})
				var r shellint.Result
				return func(p []byte) { sc.Scan(p, &r) }
			})
		}
		floor := floorScanner
		if c.name == "marks" {
			floor = floorMarks
		}
		plain := scan(scanRead, false)
		rows = append(rows,
			row{Part: "scanner", Name: c.name, Value: plain, Unit: "GB/s", Note: fmt.Sprintf("memcpy %s, ratio %s", digits(memcpy), digits(plain/memcpy))}.leastHere(floor, check, referenceWide),
			row{Part: "scanner", Name: c.name + ", reads of 4,095 bytes", Value: scan(ptyRead, false), Unit: "GB/s"},
			row{Part: "scanner", Name: c.name + ", with queries", Value: scan(scanRead, true), Unit: "GB/s", Note: "as the daemon runs it"},
		)
	}
	return rows, nil
}

func repeat(block []byte, size int) []byte {
	out := make([]byte, 0, size+len(block))
	for len(out) < size {
		out = append(out, block...)
	}
	return out
}

// best returns the highest rate of several passes over data, in GB/s, because disturbances only make a pass slower. It calls begin for each pass
// and the returned function for each read.
func best(passes int, data []byte, read int, begin func() func([]byte)) float64 {
	var top float64
	for range passes {
		f := begin()
		began := time.Now()
		for rest := data; len(rest) > 0; rest = rest[min(read, len(rest)):] {
			f(rest[:min(read, len(rest))])
		}
		top = max(top, float64(len(data))/1e9/time.Since(began).Seconds())
	}
	return top
}
