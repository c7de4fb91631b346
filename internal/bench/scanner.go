package main

import (
	"context"
	"fmt"
	"time"

	"tether/shellint"
)

const (
	scanRead = 64 << 10 // bytes that a busy pump reads at most
	ptyRead  = 4095     // bytes that Linux returns from a pty at most
)

// scannerPart measures the scanner, and copying of the same reads.
func scannerPart(_ context.Context, s settings) ([]row, error) {
	dst := make([]byte, scanRead)
	var rows []row
	for _, c := range corpora {
		data := repeat(onTerminal(c.block()), s.scanned*1e6)
		memcpy := best(s.rounds, data, scanRead, func() func([]byte) { return func(p []byte) { copy(dst, p) } })
		scan := func(read int) float64 {
			return best(s.rounds, data, read, func() func([]byte) {
				sc := shellint.NewScanner(shellint.Options{Nonce: nonce})
				var r shellint.Result
				return func(p []byte) { sc.Scan(p, &r) }
			})
		}
		whole := scan(scanRead)
		rows = append(rows,
			row{Part: "scanner", Name: c.name, Value: whole, Unit: "GB/s", Note: fmt.Sprintf("memcpy %s, ratio %s", digits(memcpy), digits(whole/memcpy))},
			row{Part: "scanner", Name: c.name + ", reads of 4,095 bytes", Value: scan(ptyRead), Unit: "GB/s"},
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
