// Package policy decides what may be run on this machine, for whom, and writes
// down what was. One [Engine] stands behind every door.
//
// A decision has three stages. Rules look at the request alone: the words of
// the command or, for a shell line, of every command in it. Limits count what a
// principal has started. What the rules leave to the person is asked, and
// denied when nobody answers in time.
//
//	e, err := policy.New(policy.Options{})
//	h, err := e.Spawn(ctx, policy.Request{Door: "mcp", Actor: actor, Argv: argv, Cwd: dir, Background: true},
//		func() (term.Handle, error) { return access.Spawn(spec) })
//	var refused *policy.Refusal // its Error is the sentence for the agent
//
// The list of commands that are refused out of the box is a guard rail against
// accidents. It reads commands; it cannot know what a program does once it
// runs. Who wants a boundary gives the principal a sandbox (platform/sandbox).
package policy
