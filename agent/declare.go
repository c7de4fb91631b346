package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/config"
	"tether/agent/declared"
	"tether/agent/devserver"
	"tether/agent/holder"
	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/ports"
	"tether/agent/start"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/proc"
	"tether/vocab"
)

// declaredCause is the cause in status when the daemon cannot save which terminals belong
// to which declarations.
const declaredCause = "declared terminals"

// openDeclared begins to start the declared terminals.
func (a *Agent) openDeclared() {
	a.declared = declared.New(declared.Options{
		Starter: &starter{a}, Keep: filepath.Join(a.cfg.Dirs.State, "declared.json"),
		Report: func(trouble string) { a.degraded.report(declaredCause, trouble) },
	})
	a.declared.Begin(a.settings.Terminal)
}

// Declared implements local.Declarer.
func (a *Agent) Declared() []localapi.Declared { return a.declaredStatus(a.declared.List()) }

// Declare implements local.Declarer. Up and restart first read the declarations again.
func (a *Agent) Declare(ctx context.Context, r localapi.DeclareRequest) ([]localapi.Declared, error) {
	up := func(ctx context.Context, names ...string) ([]declared.Status, error) {
		return a.declared.Up(ctx, r.Limits, names...)
	}
	do, ok := map[string]func(context.Context, ...string) ([]declared.Status, error){
		localapi.DeclareUp: up, localapi.DeclareDown: a.declared.Down, localapi.DeclareRestart: a.declared.Restart,
	}[r.Do]
	if !ok {
		return nil, localapi.BadRequest("do %.20q must be up, down or restart", r.Do)
	}
	if r.Limits != nil && r.Do != localapi.DeclareUp {
		return nil, localapi.BadRequest("limits are only for up")
	}
	if r.Do != localapi.DeclareDown {
		settings, err := config.Load(config.Path(a.cfg.Dirs), a.cfg.Over...)
		if err != nil {
			return nil, localapi.BadRequest("%v", err)
		}
		if err := a.declared.Declare(ctx, settings.Terminal); err != nil {
			return nil, err
		}
	}
	all, err := do(ctx, r.Names...)
	if unknown, ok := errors.AsType[*declared.UnknownError](err); ok {
		if h, err := a.pool.As(term.User).Find(unknown.Name); err == nil && h.Info().Adopted != nil {
			return nil, &term.AdoptedError{Name: h.Info().Name, From: h.Info().Adopted.From}
		}
		return nil, &localapi.Error{Code: localapi.CodeNoTerminal, Message: unknown.Error(), Hint: declaredHint(a.declared.List())}
	}
	return a.declaredStatus(all), err
}

// ReadyPort implements local.Declarer.
func (a *Agent) ReadyPort(id string) int {
	all := a.declared.List()
	i := slices.IndexFunc(all, func(s declared.Status) bool { return s.ID == id })
	if i < 0 {
		return 0
	}
	h, err := a.pool.As(term.User).Terminal(term.ID(id))
	if err != nil {
		return 0
	}
	r := all[i].Spec.At(h.Info().Port).Ready
	if r.HTTP != "" {
		port, _ := agenttools.URLPort(r.HTTP) // loading has checked it
		return port
	}
	return max(0, int(r.Port))
}

// MayRestart implements local.Declarer.
func (a *Agent) MayRestart() bool {
	return slices.ContainsFunc(a.declared.List(), func(s declared.Status) bool { return s.Spec.LetsAgents(config.AgentsRestart) })
}

// errDown: agents do not start a terminal that the person has ended.
var errDown = errors.New("the user has ended it, and only the user starts it again")

// RestartFor implements local.Declarer. It starts what this daemon knows as declared: it
// does not read the file, which an agent may have changed.
func (a *Agent) RestartFor(ctx context.Context, actor term.Actor, door, ref string) (localapi.Declared, error) {
	all := a.declared.List()
	i := slices.IndexFunc(all, func(s declared.Status) bool {
		return (s.Spec.Name == ref || s.ID == ref) && s.Spec.LetsAgents(config.AgentsRestart) && !s.Spec.Private
	})
	if h, err := a.pool.As(actor).Find(ref); i < 0 && err == nil && h.Info().Adopted != nil {
		return localapi.Declared{}, &term.AdoptedError{Name: h.Info().Name, From: h.Info().Adopted.From}
	}
	if i < 0 || ref == "" {
		return localapi.Declared{}, term.ErrNotFound
	}
	d := &all[i].Spec
	if all[i].State == declared.Down {
		return localapi.Declared{}, errDown
	}
	cwd, err := homeward(d.Cwd)
	if err != nil {
		return localapi.Declared{}, err
	}
	if err := a.policy.Restart(policy.Request{Door: door, Actor: actor, Argv: d.Command, Line: d.Line, Cwd: cwd, Env: d.Env}, term.ID(all[i].ID)); err != nil {
		return localapi.Declared{}, err
	}
	done, err := a.declared.Restart(ctx, d.Name)
	switch {
	case err != nil:
		return localapi.Declared{}, err
	case done[0].Err != "":
		if taken, ok := errors.AsType[*ports.TakenError](done[0].Cause); ok {
			return localapi.Declared{}, &ports.TakenError{Port: taken.Port, Given: taken.Given} // the caller adds who has it
		}
		return localapi.Declared{}, errors.New(done[0].Err)
	}
	return a.declaredStatus(done)[0], nil
}

// declaredHint returns a hint with the names of all declared terminals.
func declaredHint(all []declared.Status) string {
	if len(all) == 0 {
		return "there are none; tether config edit opens the file in which [[terminal]] declares one"
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Spec.Name)
	}
	return "there are " + strings.Join(names, ", ")
}

// declaredStatus returns the states in the local door's types.
func (a *Agent) declaredStatus(all []declared.Status) []localapi.Declared {
	out := make([]localapi.Declared, 0, len(all))
	for _, s := range all {
		d := localapi.Declared{
			Name: s.Spec.Name, State: string(s.State), Since: s.Since, ID: s.ID, Restart: cmp.Or(s.Spec.Restart, config.RestartNever),
			Command: s.Spec.Command, Line: s.Spec.Line, Next: s.Next, Restarts: s.Restarts, Error: s.Err, Changed: s.Changed,
			Needs: s.Spec.Needs, Waits: s.Waits, Readiness: s.Readiness,
		}
		if s.State == declared.Exited || s.State == declared.Waiting {
			d.ExitCode = &s.Code
		}
		if h, err := a.pool.As(term.User).Terminal(term.ID(s.ID)); err == nil {
			d.Notice = h.Info().Notice
		}
		out = append(out, d)
	}
	return out
}

// starter starts declared terminals as the person's.
type starter struct{ agent *Agent }

// Prepare implements declared.Starter.
func (s *starter) Prepare(ctx context.Context, d config.Declared, limits *proc.Limits) (string, func() (declared.Terminal, error), error) {
	cwd, err := homeward(d.Cwd)
	if err != nil {
		return "", nil, err
	}
	port := ""
	if d.Port != 0 {
		port = d.Port.String()
	}
	id, spawn, err := s.agent.starter.Prepare(ctx, start.Request{Actor: term.User, Audience: d.Audience, Ports: lentPorts(d), SpawnRequest: localapi.SpawnRequest{
		Door: policy.DoorConfig, Command: d.Command, Line: d.Line, SetEnv: d.Env, Name: d.Name, Cwd: cwd, Private: d.Private, LendTo: d.Lend, Limits: limits, ForwardBrowser: d.ForwardBrowser, Port: port,
	}})
	if err != nil {
		return "", nil, err
	}
	return string(id), func() (declared.Terminal, error) {
		h, err := spawn()
		if err != nil {
			return nil, err
		}
		return &declaredTerminal{starter: s, id: id, handle: h}, nil
	}, nil
}

// lentPorts returns the ports that a declaration opens.
func lentPorts(d config.Declared) (all []int) {
	for _, port := range d.Ports {
		if port == config.AutoPort {
			port = loans.AutoPort
		}
		all = append(all, int(port))
	}
	return all
}

// findPorts opens ports on which terminals' programs listen, where the person has asked
// for that. stop ends it.
func (a *Agent) findPorts(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var finding sync.WaitGroup
	finding.Go(func() {
		devserver.Find(ctx, a.pool.As(term.User), func(h term.Handle) ([]int, error) { return devserver.Of(h).Listening() })
	})
	return func() { cancel(); finding.Wait() }
}

// homeward makes a directory from the configuration absolute: a leading "~", and "",
// stand for the home directory.
func homeward(dir string) (string, error) {
	rest, ok := strings.CutPrefix(dir, "~")
	if dir != "" && !ok {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the home directory: %w", err)
	}
	return filepath.Join(home, rest), nil
}

// Find implements declared.Starter.
func (s *starter) Find(id string) (declared.Terminal, bool) {
	if h, ok := s.find(term.ID(id)); ok {
		return &declaredTerminal{starter: s, id: term.ID(id), handle: h}, false
	}
	return nil, s.pending(id)
}

func (s *starter) find(id term.ID) (term.Handle, bool) {
	h, err := s.agent.pool.As(term.User).Terminal(id)
	return h, err == nil
}

// pending reports whether a holder has a terminal that is not in the pool.
func (s *starter) pending(id string) bool {
	if s.agent.holders == nil {
		return false
	}
	ids, err := holder.List(s.agent.holders.opts.Dir)
	return err == nil && slices.Contains(ids, id)
}

// declaredTerminal is a declared terminal that was started. If the connection to its
// holder is lost, the pool gets a new terminal with the same id after a while.
type declaredTerminal struct {
	starter *starter
	id      term.ID

	mu     sync.Mutex
	handle term.Handle
}

// ID implements declared.Terminal.
func (t *declaredTerminal) ID() string { return string(t.id) }

// Over implements declared.Terminal.
func (t *declaredTerminal) Over() bool {
	_, over, _ := t.look()
	return over
}

// look reports whether the terminal has ended (over), and how. away reports that its
// holder has it, but that the pool does not.
func (t *declaredTerminal) look() (end declared.End, over, away bool) {
	h, listed := t.newest()
	i := h.Info()
	switch {
	case i.Exit != nil:
		return declared.End{Code: i.Exit.Code, Killed: i.Exit.Reason == vocab.ExitKilled, Ran: i.Started, At: i.Exit.At}, true, false
	case listed:
		return end, false, false
	case t.starter.pending(string(t.id)):
		return end, false, true
	}
	return declared.End{Code: -1, Ran: i.Started, At: time.Now()}, true, false // nobody has recorded its end
}

// newest returns the terminal as the pool had it last, and whether the pool still has it.
func (t *declaredTerminal) newest() (h term.Handle, listed bool) {
	now, listed := t.starter.find(t.id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if listed {
		t.handle = now
	}
	return t.handle, listed
}

// awayPoll is the time between two looks at a terminal that is away, to see whether it
// has come back or ended: its holder tells nobody.
const awayPoll = time.Second

// Wait implements declared.Terminal.
func (t *declaredTerminal) Wait(ctx context.Context) (declared.End, error) {
	for version := uint64(0); ; {
		end, over, away := t.look()
		if over {
			return end, nil
		}
		if err := ctx.Err(); err != nil {
			return end, err
		}
		wait, cancel := ctx, context.CancelFunc(func() {})
		if away {
			wait, cancel = context.WithTimeout(ctx, awayPoll)
		}
		version, _ = t.starter.agent.pool.Changed(wait, version) // ctx's end is seen above
		cancel()
	}
}

// Kill implements declared.Terminal.
func (t *declaredTerminal) Kill(ctx context.Context) error {
	h, _ := t.newest()
	return h.Kill(ctx)
}
