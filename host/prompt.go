package host

import (
	"context"
	"time"
)

// The echo of a key is short output. The goroutine that reads the machine's connection writes it to observers for whom nothing else waits:
// waking their write goroutines would cost the echo a switch of threads.

const (
	// shortText is the size in bytes of output that may be an echo.
	shortText = 256

	// shortMessage bounds messages that are written without asking whether the socket takes them, and the socket's backlog then. It is a small
	// part of sendBuffer, so such a write does not block.
	shortMessage = 4 << 10 // bytes

	// promptObservers bounds for how many observers the reading goroutine writes: a write takes some 5 µs, and the machine waits meanwhile.
	promptObservers = 4

	// typingTime is how long after short output somebody may still be typing.
	typingTime = 250 * time.Millisecond
)

// promptly collects the connections that short output is to be sent to. Guarded by the host's mutex.
type promptly struct {
	last time.Time // when short output came last

	on    bool // short output is being appended
	n     int
	conns [promptObservers]*conn // n of them
}

// beginLocked makes wakeLocked collect connections until endLocked.
func (p *promptly) beginLocked() { p.on, p.last = true, time.Now() }

// wakeLocked lets the connection deliver: on its write goroutine, or in sendPromptly.
func (c *conn) wakeLocked() {
	p := &c.h.promptly
	if !p.on || p.n == len(p.conns) || len(c.later) > 0 {
		c.wake()
		return
	}
	p.conns[p.n] = c
	p.n++
}

// endLocked returns the collected observers, for sendPromptly.
func (p *promptly) endLocked() [promptObservers]*conn {
	conns := p.conns
	*p = promptly{last: p.last}
	return conns
}

// sendPromptly lets connections deliver: on this goroutine if that cannot block, otherwise on their write goroutines. It is called without
// the host's mutex.
func sendPromptly(conns [promptObservers]*conn) {
	for _, c := range conns {
		if c != nil && !(c.remote.taken.emptied() && c.peer.PullDirectly(context.Background(), shortMessage)) {
			c.wake()
		}
	}
}
