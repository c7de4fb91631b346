package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tether/agent/adopt"
	"tether/agent/adoptions"
	"tether/agent/holder"
	"tether/agent/integrate"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/dirs"
)

// adoptCause is the cause in status of faults with adopted panes.
const adoptCause = "adopted panes"

// adoptedPath is the file that says which panes are adopted.
func adoptedPath(d dirs.Dirs) string { return filepath.Join(d.State, "adopted.json") }

// reader returns how a pane's reader is started, nil if none can be.
func (a *Agent) reader() []string {
	if len(a.cfg.Reader) == 0 {
		return nil
	}
	return append(slices.Clip(a.cfg.Reader), filepath.Join(a.cfg.Dirs.Runtime, "p"))
}

// openAdopted makes what keeps panes adopted. The starter must exist.
func (a *Agent) openAdopted() {
	a.adopting = adoptions.New(adoptions.Options{
		Access: a.pool.As(term.User), Start: a.starter.Adopt, Find: a.findPane, List: a.listPanes, Pending: a.pending,
		Rules: a.settings.Adopt, Keep: adoptedPath(a.cfg.Dirs), Report: func(trouble string) { a.degraded.report(adoptCause, trouble) },
	})
}

func (a *Agent) findPane(ctx context.Context, t adopt.Target) (adopt.Pane, error) {
	return adopt.Find(ctx, a.adoptOptions(ctx), t)
}

func (a *Agent) listPanes(ctx context.Context) ([]adopt.Pane, []error) {
	return adopt.List(ctx, a.adoptOptions(ctx))
}

// pending reports whether a holder has a terminal that is not in the pool.
func (a *Agent) pending(id term.ID) bool {
	ids, err := holder.List(a.holders.opts.Dir)
	return err == nil && slices.Contains(ids, string(id))
}

// Panes implements local.Adopter.
func (a *Agent) Panes(ctx context.Context) ([]adopt.Pane, []localapi.AdoptRule, []error) {
	panes, errs := a.listPanes(ctx)
	var rules []localapi.AdoptRule
	for _, r := range a.settings.Adopt {
		rules = append(rules, localapi.AdoptRule{Program: "tmux", Match: r.Match})
	}
	return panes, rules, errs
}

// Adopt implements local.Adopter.
func (a *Agent) Adopt(ctx context.Context, r localapi.AdoptRequest) (term.Handle, error) {
	if _, err := adopt.ParseTarget(r.Pane); err != nil {
		return term.Handle{}, localapi.BadRequest("%v", err)
	}
	h, err := a.adopting.Adopt(ctx, adoptions.Request{Pane: r.Pane, Name: r.Name, Private: r.Private, Types: r.Type})
	if already, ok := errors.AsType[*adoptions.AdoptedError](err); ok {
		return h, &localapi.Error{Code: localapi.CodeExists, Message: already.Error(), Hint: "tether read, lend and wait take its name; tether unadopt ends the adoption"}
	}
	return h, err
}

// keepAdopted keeps panes adopted until stop is called or ctx ends. If the terminals end
// with the daemon, no pane is adopted any more.
func (a *Agent) keepAdopted(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { a.adopting.Run(ctx) })
	return func() {
		cancel()
		keeping.Wait()
		if a.killing.Load() {
			a.adopting.Forget()
		}
	}
}

// adoptOptions looks for panes where programs of a login have them, and where this
// program's environment says so: that may be the one of a service.
func (a *Agent) adoptOptions(ctx context.Context) adopt.Options {
	env, _ := a.Environment(ctx, false) // it has reported an error
	login := integrate.Getenv(env)
	return adopt.Options{Getenv: func(name string) string { return cmp.Or(login(name), os.Getenv(name)) }}
}
