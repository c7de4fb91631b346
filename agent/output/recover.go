package output

import (
	"runtime"
	"runtime/debug"
)

// A Bug is a panic that a child's output has caused. It ends neither the daemon nor the
// terminal: the pending output and the log are dropped and shown as a gap, as if they had
// never been recorded.
type Bug struct {
	Bytes int    // length of the output that caused it
	Kind  string // of the panic's value; not its text, which might contain output
	Stack []byte
}

// bugOf describes a panic without any text from the output.
func bugOf(v any, bytes int) Bug {
	b := Bug{Bytes: bytes, Kind: "a broken invariant", Stack: debug.Stack()}
	if err, ok := v.(runtime.Error); ok {
		b.Kind = err.Error() // indices and lengths
	}
	return b
}

// survive, deferred, drops all output up to the end of p after a panic and begins anew;
// appended says that the log has p. A second panic, in survive itself, ends the daemon.
func (l *Log) survive(p []byte, appended *bool) {
	v := recover()
	if v == nil {
		return
	}
	bug := bugOf(v, len(p))
	l.mu.Lock()
	to := l.log.End()
	if !*appended {
		to += int64(len(p))
	}
	l.lost += int64(len(p))
	l.begin(to, l.textBehind(to))
	l.EndRestore() // otherwise the next daemon would panic at the same output
	l.wake()
	l.mu.Unlock()
	l.owner.Recovered(bug)
}

// surviveRedaction, deferred, restarts the redaction after a panic in it. Until the child
// prints again, hosts get no more output.
func (l *Log) surviveRedaction() {
	v := recover()
	if v == nil {
		return
	}
	bug := bugOf(v, 0)
	l.mu.Lock()
	l.restartRedaction(l.log.Start())
	l.mu.Unlock()
	l.owner.Recovered(bug)
}
