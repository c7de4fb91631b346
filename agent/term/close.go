package term

import (
	"context"
	"errors"
	"sync"

	"tether/vocab"
)

// Close kills every terminal, and the processes that agents' exited terminals have left
// running, and returns when all have ended or ctx ends. Processes that the person's
// terminals have left continue, see Leftover.
func (p *Pool) Close(ctx context.Context) error {
	p.shut()
	var wg sync.WaitGroup
	all := p.all()
	errs := make([]error, len(all))
	for i, t := range all {
		wg.Go(func() {
			before := t.Info()
			if err := t.terminate(ctx, vocab.ExitKilled); !errors.Is(err, ErrLeft) {
				errs[i] = err
			}
			if before.Exit != nil && before.Owner.Role == RoleAgent {
				_, err := t.endLeftover(ctx)
				errs[i] = errors.Join(errs[i], err)
			}
			t.stopTelling()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return p.end(ctx)
}

// shut makes the pool start nothing any more.
func (p *Pool) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.aging != nil {
		p.aging.Stop()
	}
}

// end waits until no terminal runs, or ctx ends.
func (p *Pool) end(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { // ends with the last terminal, even after Close has given up
		p.runs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Detach ends the pool and leaves the terminals whose holders outlive it to the next
// daemon; it kills those without a holder. It returns the number of those left, when all
// others have ended or ctx ends.
func (p *Pool) Detach(ctx context.Context) (kept int, err error) {
	p.shut()
	var wg sync.WaitGroup
	for _, t := range p.all() {
		if t.holder == nil {
			wg.Go(func() { _ = t.terminate(ctx, vocab.ExitKilled) }) // end says so
			continue
		}
		if t.Info().Exit == nil {
			kept++
		}
		wg.Go(func() { t.handOver(ctx) })
	}
	wg.Wait()
	return kept, p.end(ctx)
}

// handOver leaves a terminal to the next daemon, after its state was given to the holder.
func (t *Terminal) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keepWithin)
	defer cancel()
	t.mu.Lock()
	t.log.Note()
	t.mu.Unlock()
	_ = t.keep(ctx) // if it fails, the next daemon scans more output and knows less about commands
	t.leave()
}
