// Package term is the core of tether: terminals, their output, and everybody's rights on
// them.
//
// A [Pool] owns the terminals of one daemon. A [Terminal] is a child process on a pty
// with its recorded output. Its pump goroutine reads the pty and appends the bytes to a
// bounded log, see package output, which scans them once; beside the bytes the log keeps
// cuts (ranges that a view leaves out or replaces) and marks (events between bytes: a
// command began, the title changed). Consumers pull: an [output.Reader] is a cursor with
// a view, and the pump never knows how many there are. Every door uses [Pool.As], which
// ties an [Actor] to its rights; the only table of rights is in authority.go.
//
// There are two kinds of offsets. Raw offsets count the bytes that the child wrote. Text
// offsets count the bytes of output.ViewText, the valid UTF-8 that observers get; they
// follow from the raw bytes alone, so a host and a restarted daemon agree on them.
//
// The life of a terminal:
//
//	Spawn ──▶ running ──(leader reaped, output drained)──▶ exited ──(Remove, or
//	             │                                            ▲      kept too long)──▶ gone
//	             └──Kill: TERM, grace, KILL of the tree───────┘
package term
