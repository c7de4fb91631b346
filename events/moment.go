package events

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"tether/agenttools"
	"tether/internal/clip"
	"tether/internal/retry"
	"tether/problems"
	"tether/screen"
	"tether/vocab"
)

// freshEpoch returns a random id for a journal, never 0.
func freshEpoch() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint32(b[:]) | 1
}

// awaitOutput waits until the terminal has printed something after an offset, and returns
// the end of the output; ok is false if ctx ends or the terminal has exited.
func awaitOutput(ctx context.Context, t agenttools.Terminal, from int64) (int64, bool) {
	if end := t.Info().End; end > from {
		return end, true
	}
	rd, err := t.Read(from)
	if err != nil {
		return 0, false
	}
	defer rd.Close()
	var buf [64]byte
	for {
		ev, err := rd.Next(ctx, buf[:])
		if err != nil || ev.Exited {
			return 0, false
		}
		if len(ev.Data) > 0 || ev.Lost > 0 {
			return max(t.Info().End, ev.Off), true
		}
	}
}

// idle reports when a terminal has printed something and then nothing for long enough.
// While it prints, it is checked eight times in that time.
func (src *source) idle(ctx context.Context, t agenttools.Terminal, i agenttools.Info) {
	most := src.spec.idle()
	for id, end := i.ID, i.End; ; {
		var ok bool
		if end, ok = awaitOutput(ctx, t, end); !ok {
			return
		}
		for since := time.Now(); ; {
			left := most - time.Since(since)
			if left <= 0 {
				break
			}
			if !retry.Wait(ctx, min(left, most/8)) {
				return
			}
			i := t.Info()
			if i.Exit != nil {
				return
			}
			if i.End != end {
				end, since = i.End, time.Now()
			}
		}
		data := map[string]any{"idleMs": most.Milliseconds()}
		if line := lastLine(t, t.Info()); line != "" {
			data["lastLine"] = clip.Text(line, maxShow)
		}
		src.add(entry{terminal: id, data: data, text: true})
	}
}

// state reports changes of the state that does not depend on output. It looks at most
// once a second.
func (src *source) state(ctx context.Context, t agenttools.StatefulTerminal, id string, was vocab.State) {
	for {
		now, changed := t.State()
		if data := src.stateData(was, now); data != nil {
			src.add(entry{terminal: id, data: data, text: true})
			if !retry.Wait(ctx, apart) {
				return
			}
			was = now
			continue
		}
		was = now
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// stateData is the data of a change, nil if nothing changed.
func (src *source) stateData(was, now vocab.State) map[string]any {
	if src.spec.kind.Name == Ready {
		if now.Ready == was.Ready || now.Ready != vocab.ReadyYes && now.Ready != vocab.ReadyFailed {
			return nil
		}
		return map[string]any{"state": string(now.Ready), "why": clip.Text(screen.Clean(now.ReadyWhy), maxShow)}
	}
	if !now.Input.Awaits() || was.Input.Awaits() && was.InputSince.Equal(now.InputSince) && was.Input == now.Input {
		return nil
	}
	data := map[string]any{"kind": string(now.Input)}
	if now.Input == vocab.InputAwaiting && now.Prompt != "" {
		data["promptLine"] = clip.Text(screen.Clean(now.Prompt), maxShow)
	}
	return data
}

// problems reports changes of the problems that tools print: at most once a second, and
// after output.
func (src *source) problems(ctx context.Context, t agenttools.Terminal, id string, fresh bool) {
	end := t.Info().End
	was, ok := src.ask(ctx, t, id)
	if !ok {
		return
	}
	if fresh {
		was, end = nil, 0 // what it has printed already is news
	}
	for {
		if end, ok = awaitOutput(ctx, t, end); !ok {
			return
		}
		now, ok := src.ask(ctx, t, id)
		if !ok {
			return
		}
		if data := problemData(was, now); data != nil {
			src.add(entry{terminal: id, data: data, text: true})
		}
		was = now
		if !retry.Wait(ctx, apart) {
			return
		}
	}
}

// problemKey identifies a problem: problems with equal keys are the same.
type problemKey struct {
	file, severity, message string
	line                    int
}

func keyOf(p problems.Problem) problemKey {
	return problemKey{p.File, string(p.Severity), p.Message, p.Line}
}

func (src *source) ask(ctx context.Context, t agenttools.Terminal, id string) ([]problems.Problem, bool) {
	a, err := src.e.opts.Problems.Ask(ctx, id, t, 0, problems.MaxProblems)
	if err != nil {
		return nil, false
	}
	var all []problems.Problem
	for _, p := range a.Problems {
		if src.spec.Severity == "" || string(p.Severity) == src.spec.Severity {
			all = append(all, p)
		}
	}
	return all, true
}

// maxFirst bounds the problems that an event names.
const maxFirst = 5

// problemData is the data of a change, nil if nothing changed.
func problemData(was, now []problems.Problem) map[string]any {
	before := map[problemKey]bool{}
	for _, p := range was {
		before[keyOf(p)] = true
	}
	fresh, first := 0, []any{}
	for _, p := range now {
		if before[keyOf(p)] {
			delete(before, keyOf(p))
			continue
		}
		if fresh++; len(first) < maxFirst {
			first = append(first, map[string]any{"file": clip.Text(p.File, 200), "line": p.Line, "severity": string(p.Severity), "message": clip.Text(p.Message, 300)})
		}
	}
	if fresh == 0 && len(before) == 0 {
		return nil
	}
	return map[string]any{"new": fresh, "cleared": len(before), "open": len(now), "first": first}
}

// verdicts reports changes of verdicts after the first n.
func (src *source) verdicts(judges agenttools.Judges, n int64) {
	for src.ctx.Err() == nil {
		var all []agenttools.VerdictChange
		all, n, _ = judges.VerdictChanges(src.ctx, n)
		for _, c := range all {
			t, gone := src.e.opts.Terminals.Open(c.Terminal)
			if gone != nil || !src.spec.covers(t.Info()) || src.spec.To != "" && src.spec.To != c.To {
				continue
			}
			first := []any{}
			for _, p := range c.First {
				first = append(first, clip.Text(screen.Clean(p), maxShow))
			}
			src.add(entry{terminal: c.Terminal, text: true, data: map[string]any{
				"run": c.Run, "command": clip.Text(screen.Clean(c.Command), maxShow), "from": c.From, "to": c.To, "commit": c.Commit,
				"errors": c.Errors, "warnings": c.Warnings, "first": first,
			}})
		}
	}
}

// ports looks for listening ports every 2 s while somebody is subscribed.
func (src *source) ports() {
	was, _ := src.e.ports()
	for retry.Wait(src.ctx, portsEvery) {
		now, err := src.e.ports()
		if err != nil {
			continue
		}
		list := src.e.opts.Terminals.List()
		for _, i := range list {
			if src.spec.covers(i) {
				src.comparePorts(i.ID, was[i.ID], now[i.ID])
			}
		}
		was = now
	}
}

// comparePorts reports the ports that only one of the lists has.
func (src *source) comparePorts(id string, was, now []Port) {
	if src.spec.kind.Name == PortClosed {
		was, now = now, was
	}
	had := map[int]bool{}
	for _, p := range was {
		had[p.Number] = true
	}
	for _, p := range now {
		if had[p.Number] || src.spec.Port != nil && *src.spec.Port != p.Number {
			continue
		}
		had[p.Number] = true
		data := map[string]any{"port": p.Number, "address": p.Address}
		if src.spec.kind.Name == PortOpened {
			data["url"] = "http://" + p.Address + "/"
		}
		src.add(entry{terminal: id, data: data})
	}
}

// ports returns which programs listen where, read once for all sources.
func (e *Engine) ports() (map[string][]Port, error) {
	e.portsMu.Lock()
	defer e.portsMu.Unlock()
	if time.Since(e.portsAt) > portsEvery/2 {
		e.portsLast, e.portsErr = e.opts.Ports()
		e.portsAt = time.Now()
	}
	return e.portsLast, e.portsErr
}
