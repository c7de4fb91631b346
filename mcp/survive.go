package mcp

import (
	"context"
	"errors"
	"runtime/debug"
)

// errBug is what a model is told of a bug of ours.
var errBug = errors.New("this call ran into a bug in tether and did nothing more; tether's log has the details")

// survive returns the tool with calls that end alone when they meet a bug: they read what any program has printed, and run in a process
// that others depend on.
func (s *Server) survive(t tool) tool {
	do := t.call
	t.call = func(ctx context.Context, c call) (r result, err error) {
		defer s.survived(t.name, func() { r, err = result{}, errBug })
		return do(ctx, c)
	}
	return t
}

// survived is deferred by calls: of one that panics it tells who keeps the log, and has it answer errBug by instead.
func (s *Server) survived(tool string, instead func()) {
	if recover() == nil {
		return
	}
	if s.opts.Bug != nil {
		s.opts.Bug(tool, debug.Stack())
	}
	instead()
}
