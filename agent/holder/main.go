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

// Files that Spawn hands to a new holder, see proc.Inherited. They are descriptors 3 and 4 where there are descriptors.
const (
	specFile   = 0 // the spawn message
	statusFile = 1 // it says whether that runs
)

// trimAfter is how long after its start a holder hands back the memory that the start needed.
const trimAfter = 500 * time.Millisecond

// Main is the holder's program, which Spawn starts. It returns when the holder is over, with the status of its process. Call it before
// anything else; it changes signal actions and memory limits of the whole process. The arguments are only for people who look at the list
// of processes.
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
	if _, err := status.Write(appendBytesFrame(nil, kindStarted, nil)); err != nil {
		h.stop() // nobody knows of this terminal
	}
	status.Close()
	trimmer := idle.New(trimAfter)
	trimmer.Stir()
	h.tasks.Go(func() { trimmer.Run(h.ctx) })
	h.run()
	if h.subreaper {
		h.stay()
		runtime.KeepAlive(socket) // and its lock with it
		_ = removeLock(socketPath(o.Dir, s.ID))
	}
	return 0
}

// Memory of the runtime. A holder has little garbage. Where little was printed, the first collection alone would take half a MiB for its
// own needs, so it is not to come; where much was, a small heap that is swept often costs next to nothing.
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

// maxProcs is how many threads run Go code at a time. With two, a flood costs a holder a fifth more CPU time.
const maxProcs = 1

// open listens, then starts the child: an id in use is found before anything runs.
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
			return socket.Leave() // the lock is for EndStaying
		}
		return errors.Join(removeLock(path), socket.Close())
	})
	s.Command.Adopted, s.Command.Spare = adopts, o.spare
	c, err := pty.Start(s.Command)
	if err != nil {
		return nil, nil, errors.Join(err, removeLock(path), socket.Close())
	}
	s.Command.Args, s.Command.Env = nil, nil // secrets, and memory
	h := newHolder(s, c, closeSocket)
	h.subreaper = adopts
	h.key, h.check = o.Key, newGuard(o.Lock, os.Getppid()).check
	return h, socket, nil
}

// maxConns bounds the simultaneous connections, of which one is the daemon's.
const maxConns = 16

// acceptAgain is how long accept waits when the system has no descriptor for a connection: a holder that stopped to listen could never be
// reached again.
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
