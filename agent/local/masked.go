package local

import (
	"context"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/agenttools"
)

// holdMasked is how long text is held back because a secret may go on, as for hosts.
const holdMasked = 200 * time.Millisecond

// maskedTerminal is a terminal whose output and commands are masked as for hosts; without rules they are shown as they are.
type maskedTerminal struct {
	mcpTerminal
	rules *redact.Rules
}

// Info implements agenttools.Terminal.
func (t maskedTerminal) Info() agenttools.Info {
	i := t.mcpTerminal.Info()
	if t.rules != nil {
		redactInfo(&i, t.rules)
	}
	return i
}

// Commands implements agenttools.Terminal.
func (t maskedTerminal) Commands() []agenttools.Command {
	all := t.mcpTerminal.Commands()
	for i := range all {
		all[i].Line = t.rules.Redact(all[i].Line)
	}
	return all
}

// Read implements agenttools.Terminal.
func (t maskedTerminal) Read(from int64) (agenttools.Reader, error) {
	if t.rules == nil {
		return t.mcpTerminal.Read(from)
	}
	rd, err := t.h.Reader(term.ReaderOptions{View: term.ViewText, From: from})
	if err != nil {
		return nil, mcpError(err)
	}
	return &maskedReader{mcpReader: mcpReader{t.mcpTerminal, rd}, rules: t.rules}, nil
}

// maskedReader masks what a reader of text returns. It holds back what may be the beginning of a secret, for holdMasked at most.
type maskedReader struct {
	mcpReader
	rules  *redact.Rules
	filter *redact.Filter

	held  []byte // text of which the beginning may be decided
	off   int64  // its text offset
	raw   int64  // the raw offset after it
	since time.Time
	then  *agenttools.Event // what follows the held text
	err   error
}

// TryNext implements agenttools.Reader.
func (r *maskedReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	for {
		if n := r.decided(); n > 0 {
			n = copy(buf, r.held[:n])
			r.held, r.off = r.held[n:], r.off+int64(n)
			return agenttools.Event{Data: buf[:n], Off: r.raw - int64(len(r.held))}, true, nil
		}
		if len(r.held) == 0 && r.then != nil {
			ev := *r.then
			r.then = nil
			return ev, true, nil
		}
		if len(r.held) == 0 && r.err != nil {
			return agenttools.Event{}, false, r.err
		}
		if r.then == nil && r.err == nil && r.fill(buf) {
			continue
		}
		if len(r.held) == 0 {
			return agenttools.Event{}, false, nil
		}
		if r.then == nil && r.err == nil && time.Since(r.since) < holdMasked {
			return agenttools.Event{}, false, nil
		}
		r.filter.Flush()
		r.mask()
	}
}

// decided is how much of the held text may be shown.
func (r *maskedReader) decided() int {
	if r.filter == nil {
		return 0
	}
	return int(min(max(r.filter.Decided()-r.off, 0), int64(len(r.held))))
}

// fill takes what the terminal has next; false if there is nothing.
func (r *maskedReader) fill(buf []byte) bool {
	ev, ok, err := r.rd.TryNext(buf)
	if ok && err == nil && len(ev.Data) > 0 {
		if r.filter == nil || len(r.held) == 0 && r.off != ev.Off {
			r.filter, r.off = redact.NewFilter(r.rules, ev.Off), ev.Off
		}
		if len(r.held) == 0 {
			r.since = time.Now()
		}
		r.held, r.raw = append(r.held, ev.Data...), ev.Raw
		r.filter.Feed(ev.Data)
		r.mask()
		return true
	}
	out, ok, err := r.event(ev, ok, err)
	if err != nil {
		r.err = err
		return true
	}
	if !ok {
		return false
	}
	if out.Dir != "" {
		out.Dir = r.rules.Redact(out.Dir)
	}
	if out.Finished != nil {
		out.Finished.Line = r.rules.Redact(out.Finished.Line)
	}
	r.then = &out
	return true
}

// mask puts over the held text what the filter has found.
func (r *maskedReader) mask() {
	secrets, sequences := r.filter.Take()
	for _, m := range secrets {
		m.Put(r.held, r.off)
	}
	for _, m := range sequences {
		m.Put(r.held, r.off)
	}
}

// Next implements agenttools.Reader.
func (r *maskedReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	for {
		ev, ok, err := r.TryNext(buf)
		if ok || err != nil {
			return ev, err
		}
		wait, cancel := ctx, context.CancelFunc(func() {})
		if len(r.held) > 0 {
			wait, cancel = context.WithTimeout(ctx, holdMasked)
		}
		select {
		case <-r.rd.Ready(1):
		case <-wait.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return agenttools.Event{}, ctx.Err()
		}
	}
}
