package holder

import (
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"tether/internal/idle"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
)

// Files that Spawn passes to a new holder, see proc.Inherited. They are descriptors 3 and
// 4 on systems with descriptors.
const (
	specFile   = 0 // the spawn message
	statusFile = 1 // the holder reports on it whether the child runs
)

// trimAfter is how long after its start a holder frees the memory that the start needed.
const trimAfter = 500 * time.Millisecond

// Main is the holder's program, which Spawn starts. It returns the status for the process
// to exit with, when the holder has ended. Call it before anything else; it changes
// signal actions and memory limits of the whole process. The arguments are ignored: they
// are for people who look at a list of processes.
func Main(args []string) int {
	stop := proc.StopSignals()
	spec, status := proc.Inherited(specFile), proc.Inherited(statusFile)
	if spec == nil || status == nil {
		return 2
	}
	defer status.Close()
	o, s, err := readSpawn(spec)
	spec.Close()
	if err != nil {
		_, _ = status.Write(encodeFailed(err))
		return 1
	}
	tune(s.LogBytes)
	h, socket, err := open(o, s)
	if err != nil {
		_, _ = status.Write(encodeFailed(err))
		return 1
	}
	go func() {
		<-stop
		h.stop()
	}()
	h.tasks.Go(func() { h.accept(socket) })
	if h.subreaper {
		h.tasks.Go(func() { proc.ReapOrphans(h.child.Pid(), h.finished) })
	}
	if _, err := status.Write(bytesFrame(kindStarted, []byte(faultsOf(h.child)))); err != nil {
		h.stop() // the daemon did not learn of this terminal
	}
	status.Close()
	trimmer := idle.New(trimAfter)
	trimmer.Stir()
	h.tasks.Go(func() { trimmer.Run(h.ctx) })
	h.run()
	if h.subreaper {
		h.stay()
		runtime.KeepAlive(socket) // and with it its lock
		_ = removeLock(socketPath(o.Dir, s.ID))
	}
	return 0
}

// faultsOf returns which of the child's limits could not be set.
func faultsOf(c child) string {
	text := ""
	if c, ok := c.(interface{ Faults() string }); ok {
		text = c.Faults()
	}
	return text[:min(len(text), maxText)]
}

// Memory of the runtime. A holder has little garbage. In a holder that has printed
// little, the first collection alone would take half a MiB for its own needs, so there
// should be none. In one that has printed much, a small heap that is collected often
// costs next to nothing.
const (
	gcFirst   = 100
	gcPercent = 25
	gcLater   = 1 << 20 // bytes of output after which gcPercent holds
	heapSpare = 8 << 20 // bytes besides the log
)

func tune(logBytes int) {
	debug.SetMemoryLimit(int64(logBytes) + heapSpare)
	runtime.GOMAXPROCS(maxProcs)
}

// maxProcs is a holder's GOMAXPROCS. With two, a flood costs a holder a fifth more CPU
// time.
const maxProcs = 1

// open listens and then starts the child, in this order, so that an id in use is detected
// before anything runs.
func open(o Options, s Spec) (*holder, *ipc.Listener, error) {
	path := socketPath(o.Dir, s.ID)
	socket, err := ipc.Listen(path)
	if locked := (*ipc.LockedError)(nil); errors.As(err, &locked) {
		return nil, nil, ErrInUse
	}
	if err != nil {
		return nil, nil, err
	}
	adopts := IsAgents(s.Command.Env) && proc.AdoptOrphans() == nil
	closeSocket := sync.OnceValue(func() error {
		if adopts {
			return socket.Leave() // keeps the lock, for EndStaying
		}
		return errors.Join(removeLock(path), socket.Close())
	})
	s.Command.Adopted, s.Command.Spare = adopts, o.spare
	c, err := pty.Start(s.Command)
	if err != nil {
		return nil, nil, errors.Join(err, removeLock(path), socket.Close())
	}
	s.Command.Args, s.Command.Env = nil, nil // they take memory, and may contain secrets
	h := newHolder(s, c, closeSocket)
	h.subreaper = adopts
	h.key, h.check = o.Key, newGuard(o.Lock, os.Getppid()).check
	return h, socket, nil
}

// maxConns bounds the simultaneous connections, of which one is the daemon's.
const maxConns = 16

// acceptAgain is how long accept waits when the system has no descriptor for a
// connection. It must not give up: a holder that stopped listening could never be reached
// again.
const acceptAgain = 100 * time.Millisecond

// accept serves connections until the socket is closed.
func (h *holder) accept(l net.Listener) {
	slots := make(chan struct{}, maxConns)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(acceptAgain):
				continue
			case <-h.finished:
				return
			}
		}
		select {
		case slots <- struct{}{}:
			h.tasks.Go(func() {
				h.serve(conn)
				<-slots
			})
		default:
			conn.Close()
		}
	}
}
