package start

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"

	"tether/agent/adopt"
	"tether/agent/adoptions"
	"tether/agent/integrate"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/shell"
	"tether/vocab"
)

// Adopt starts the reader of a pane as a terminal of the person's, which is lent to
// nobody. Errors: an *Error, a *term.SpecError, ctx's, and those of the pool.
func (s *Starter) Adopt(ctx context.Context, pane adopt.Pane, r adoptions.Request) (term.Handle, error) {
	at := pane.Target.String()
	switch {
	case len(s.opts.Reader) == 0:
		return term.Handle{}, bad("this daemon cannot adopt panes")
	case pane.Dir == "" && !r.Private: // the rules of lending could not be applied
		return term.Handle{}, &Error{Kind: Unconfined, Message: fmt.Sprintf("the directory of %s is not known, so that no rule of lending can be applied to it", at), Hint: "adopt it with --private"}
	}
	env, _ := s.opts.Environment(ctx, false) // it has reported an error
	env = shell.Merge(os.Environ(), env)
	nonce, args := rand.Text(), adopt.ReaderArgs(pane, r.Types)
	if r.Again {
		args = append(args, adopt.Again)
	}
	command := strings.Fields(pane.Command)
	if len(command) == 0 {
		command = []string{at}
	}
	spec := term.Spec{
		Command: command, Argv: slices.Concat(s.opts.Reader, args), Env: adopt.ReaderEnv(integrate.Getenv(env), nonce), Reveals: env, Nonce: nonce,
		Name: r.Name, Cwd: pane.Dir, Size: pane.Size, Private: r.Private, Door: policy.DoorCLI,
		Adopted: &vocab.Adopted{From: at, Program: pane.Target.Program, Exact: pane.Exact, Types: r.Types, Pid: pane.Pid, Rule: r.Rule},
	}
	if spec.Cwd == "" {
		spec.Cwd = string(os.PathSeparator)
	}
	if r.Name == "" {
		spec.Suggest(nameOf(&Request{SpawnRequest: localapi.SpawnRequest{Command: command, Cwd: spec.Cwd}, Actor: term.User}))
	}
	asked := policy.Request{Door: spec.Door, Actor: term.User, Argv: []string{"tether", "adopt", at}, Cwd: spec.Cwd}
	return s.opts.Policy.Spawn(ctx, asked, func() (term.Handle, error) { return s.opts.Access(term.User).Spawn(spec) })
}
