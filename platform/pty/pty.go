// Package pty runs a program on a new pseudo-terminal and gives access to its output,
// input, size and end.
//
// It keeps no output and does not interpret it. The end of output and the end of the
// program are two events: a program may close its terminal and live on, and a background
// job may print after the program has gone.
//
//	p, err := pty.Start(pty.Command{Path: "sh", Args: []string{"sh"}, Env: os.Environ()})
//	if err != nil { … }
//	go io.Copy(os.Stdout, p)
//	exit := p.Wait()
//	err = p.Kill(ctx, time.Second) // also background processes
//	p.Close()
package pty

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"tether/platform/proc"
)

// ErrExited is returned by Signal when the program has ended.
var ErrExited = errors.New("the program has ended")

// HangUp is a name for PTY.Signal beside those of signals: the terminal's window is gone.
const HangUp = "HANGUP"

// ErrNoFeed is returned by PTY.Feed for a program that was started without Command.Feed.
var ErrNoFeed = errors.New("the program's standard input is its terminal")

// FeedWait is how long a program's standard input stays open without a writer. It is
// longer than a command of tether waits for the next daemon.
const FeedWait = 20 * time.Second

// Size of the terminal in cells.
type Size struct{ Cols, Rows uint16 }

// DefaultSize is used if a Command leaves a dimension 0: the size of terminals without a
// known size since the VT100.
var DefaultSize = Size{Cols: 80, Rows: 24}

func (s Size) orDefault() Size {
	s.Cols = cmp.Or(s.Cols, DefaultSize.Cols)
	s.Rows = cmp.Or(s.Rows, DefaultSize.Rows)
	return s
}

// Command describes the program to run. The caller may change it after Start has
// returned.
type Command struct {
	// Path of the program. Without a slash it is searched for in the PATH of Env (not of
	// this process); a relative one counts from Dir.
	Path string
	// Args are all arguments, the program's own name first. Empty means just Path.
	Args []string
	// Dir is the working directory; "" means the working directory of this process.
	Dir string
	// Env is the whole environment as NAME=value; nothing is inherited. proc.Tag(id) in
	// it lets Kill find processes that detached themselves.
	Env []string
	// Adopted and Spare have the meaning that they have in proc.Tree.
	Adopted bool
	Spare   func(pid int) bool
	// Feed makes a pipe, which PTY.Feed fills, the program's standard input instead of
	// the terminal. Its output stays at the terminal, which is still its controlling one.
	// The input ends after FeedWait if PTY.Feed is not called before. Only where CanFeed
	// says so.
	Feed bool
	// Limits are the program's umask, nice value and soft limits where they differ from
	// those of this process, which must then call proc.BecomeLimited. PTY.Faults says
	// what could not be set. They have no effect on Windows, which has none of them.
	Limits proc.Limits
	// Size of the terminal; 0 in a dimension means that of DefaultSize.
	Size Size
}

// Exit is how the program ended.
type Exit struct {
	// Code is its status, or 128 plus the number of the signal that ended it, as shells
	// count. On Windows it is all 32 bits of the status, without a sign.
	Code int
	// Signal is the name of the signal that ended it, such as "SIGKILL"; "" if it ended
	// by itself. On Windows it is SIGKILL for a process killed with its job, and SIGHUP
	// for one that ended with its console without a status.
	Signal string
}

// StartError names the faulty part of a Command. It wraps the system's error, such as
// fs.ErrNotExist or fs.ErrPermission.
type StartError struct {
	What string // "directory", "program", "size" or "terminal": the part that failed
	Name string // of it
	Err  error
}

func (e *StartError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.What, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.What, e.Name, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// Look is how a terminal handles typed input, at the moment of the look.
type Look struct {
	Lines   bool // whole lines, which can be edited before they are sent (canonical mode)
	Echo    bool // typed text is shown
	Front   int  // leader of the process group in the foreground, or 0
	Reading proc.Reading
	Late    bool // who reads is asked and not answered yet: another look may tell
}

// Secret reports whether lines are taken and not shown, as programs ask for passwords.
func (l Look) Secret() bool { return l.Lines && !l.Echo }
