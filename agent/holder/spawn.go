package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"tether/agent/flow"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// Options says where holders listen and how one is started.
type Options struct {
	// Dir is the absolute path of the directory of the sockets, to which only this user
	// has access; it is made if missing. Dir/ID.sock must fit into ipc.MaxPath.
	Dir string
	// Key is the secret of KeyBytes by which this process and holders know each other. It
	// is the same for all holders of the directory.
	Key []byte
	// Lock is the absolute path of the lock that a daemon holds while it is connected,
	// see ipc.Lock. With "", no lock is required.
	Lock string
	// Path is the absolute path of a program that calls Main, and Argv the whole argument
	// list that makes it do so; the id is added.
	Path string
	Argv []string
	// Inputs records at which terminal somebody last typed, for all holders that share
	// it: floods of the others then make room for the echo. nil means that this holder
	// shares it with none.
	Inputs *flow.Typing
	// Spare, if not nil, may have a process that becomes the next holder.
	Spare *Spare
}

// environ is the whole environment of a holder: the variables that its runtime reads
// before Main, and the mark of an agent's terminal, which marks the holder's descendants
// as the agent's. Of the daemon's environment it contains only where the race detector
// reports, in tests.
func (s Spec) environ() []string {
	env := []string{"GOMAXPROCS=" + strconv.Itoa(maxProcs), "GOGC=" + strconv.Itoa(gcFirst), "GOTRACEBACK=none"}
	for _, entry := range s.Command.Env {
		if strings.HasPrefix(entry, proc.AgentVar+"=") {
			env = append(env, entry)
		}
	}
	if race, ok := os.LookupEnv("GORACE"); ok {
		env = append(env, "GORACE="+race)
	}
	return env
}

// Spawn starts a holder and in it the child, and connects to it. It returns when the
// child runs. Errors: a *pty.StartError if the command cannot be started, ErrInUse if the
// id is in use. If ctx ends first, nothing is left running.
func Spawn(ctx context.Context, o Options, s Spec) (*Client, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Path == "" {
		return nil, errors.New("holder: no program given that is to be the holder")
	}
	message, err := encodeSpawn(o, s)
	if err != nil {
		return nil, err
	}
	b, faults := (*begun)(nil), ""
	if !IsAgents(s.Command.Env) {
		b = o.Spare.take()
	}
	if b != nil {
		if faults, err = b.finish(ctx, message); errors.Is(err, errEnded) && ctx.Err() == nil { // somebody has ended it
			b = nil
		}
	}
	if b == nil {
		if b, err = begin(o.Path, append(slices.Clip(o.Argv), s.ID), s.environ()); err == nil {
			faults, err = b.finish(ctx, message)
		}
	}
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, o, s.ID, b.process)
	if err != nil {
		end(b.process) // it runs, but no daemon would know of it
		return nil, err
	}
	c.faults = faults
	return c, nil
}

// begun is a holder's process that waits for the spawn message.
type begun struct {
	process *os.Process
	spec    *os.File // for the message
	status  *os.File // what it reports
}

// begin starts the holder's process.
func begin(path string, argv, env []string) (*begun, error) {
	spec, specW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	status, statusW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, spec.Close(), specW.Close())
	}
	process, err := proc.StartSession(path, argv, env, spec, statusW)
	spec.Close()
	statusW.Close()
	if err != nil {
		return nil, errors.Join(err, specW.Close(), status.Close())
	}
	return &begun{process, specW, status}, nil
}

// finish sends the message and waits until the holder is ready.
func (b *begun) finish(ctx context.Context, message []byte) (faults string, err error) {
	stop := context.AfterFunc(ctx, func() {
		b.spec.Close()
		b.status.Close()
	})
	_, err = b.spec.Write(message)
	b.spec.Close()
	faults, said := readStarted(b.status)
	if said != nil || err == nil {
		err = said // the holder's message explains a broken pipe
	}
	stop()
	b.status.Close()
	if err != nil {
		end(b.process)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", err
	}
	return faults, nil
}

// end ends a holder that is not needed and waits for it. A holder that cannot report that
// it is ready ends by itself; the signal is for one that hangs, or has reported already.
func end(process *os.Process) {
	_ = proc.Terminate(process)
	_, _ = process.Wait()
}

// Dial connects to the holder with this id and replaces a connected daemon. The error is
// ErrGone if there is none, a *VersionError if no common version exists, and a
// *RefusedError if it does not accept this process. It uses Dir and Key of o.
func Dial(ctx context.Context, o Options, id string) (*Client, error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: %.80q", ErrGone, id)
	}
	return dial(ctx, o, id, nil)
}

func dial(ctx context.Context, o Options, id string, process *os.Process) (*Client, error) {
	path := socketPath(o.Dir, id)
	conn, err := ipc.Dial(ctx, path)
	if errors.Is(err, ipc.ErrNotRunning) {
		return nil, fmt.Errorf("%w: %s", ErrGone, id)
	}
	if err != nil {
		return nil, err
	}
	return newClient(ctx, o, id, path, conn, process)
}
