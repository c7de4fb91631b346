// Package term is the core of tether: terminals, what was printed on them, and
// who may do what with them.
//
// A [Pool] owns the terminals of one daemon. A [Terminal] is a child process
// on a pty with its recorded output. Its pump goroutine reads the pty, scans
// the bytes once and appends them to a bounded log under absolute offsets;
// beside the bytes it keeps cuts (ranges that a view leaves out or replaces)
// and marks (points that are no bytes: a command began, the title changed).
// Consumers pull: a [Reader] is a cursor with a [View], and the pump never
// knows how many there are. Every door comes in through [Pool.As], which ties
// an [Actor] to what it may do; the table is in authority.go and nowhere else.
//
// Two streams of positions exist. Raw offsets count the bytes the child
// wrote. Text offsets count the bytes of [ViewText], the valid UTF-8 that
// observers get; they follow from the raw bytes alone, so a host and a
// restarted daemon agree on them.
//
// The life of a terminal:
//
//	Spawn ──▶ running ──(leader reaped, output drained)──▶ exited ──(Remove, or
//	             │                                            ▲      kept too long)──▶ gone
//	             └──Kill: TERM, grace, KILL of the tree───────┘
package term
