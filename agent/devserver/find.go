package devserver

import (
	"context"
	"slices"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/retry"
	"tether/vocab"
)

// Find opens the ports on which programs listen of terminals that are lent with
// loans.AutoPort, until ctx ends. listening is Servers.Listening.
func Find(ctx context.Context, access term.Access, listening func(term.Handle) ([]int, error)) {
	looked := map[term.ID]glance{}
	for version := uint64(0); ctx.Err() == nil; {
		asking := slices.DeleteFunc(access.List(), func(h term.Handle) bool { return !wantsAuto(h.Info()) })
		now := map[term.ID]glance{}
		for _, h := range asking {
			g := looked[h.ID()]
			if bytes := h.Info().Bytes; bytes != g.bytes {
				g.bytes, g.printed = bytes, time.Now()
			}
			if g.due() {
				g.at = time.Now()
				if ports, err := listening(h); err == nil { // else a connection could not be checked either
					h.FoundPorts(ports)
				}
			}
			now[h.ID()] = g
		}
		looked = now
		if len(asking) > 0 {
			retry.Wait(ctx, findEvery)
			continue
		}
		version, _ = access.Changed(ctx, version) // ctx's end is seen above
	}
}

const (
	findEvery = time.Second // between two looks at a terminal that prints
	findAfter = 5 * time.Second
	findQuiet = 15 * time.Second // between two looks at one that prints nothing
)

// glance is the last look at a terminal.
type glance struct {
	bytes       int64 // that it had printed
	printed, at time.Time
}

// due reports whether the next look is due. A server that begins to listen prints that,
// before or after.
func (g *glance) due() bool {
	return time.Since(g.printed) < findAfter || time.Since(g.at) >= findQuiet
}

func wantsAuto(i term.Info) bool {
	return i.Exit == nil && slices.ContainsFunc(i.Loans, func(l loans.Loan) bool {
		return slices.ContainsFunc(l.Ports, func(p vocab.LentPort) bool { return p.Port == loans.AutoPort })
	})
}
