// Package policy decides which commands may run on this machine, and for whom, and keeps
// the audit log. One [Engine] serves every door.
//
// A decision has three stages. Rules look at the request alone: the words of the command
// or, for a shell line, of every command in it. Limits count the terminals that a
// principal has started. If the rules leave the decision to the person, the person is
// asked; without an answer in time the request is denied.
//
//	e, err := policy.New(policy.Options{})
//	h, err := e.Spawn(ctx, policy.Request{Door: "mcp", Actor: actor, Argv: argv, Cwd: dir, Background: true},
//	func() (term.Handle, error) { return access.Spawn(spec) })
//	var refused *policy.Refusal // its Error is the sentence for the agent
//
// The list of commands that are refused by default is a guard rail against accidents. It
// reads commands; it cannot know the effect of a running program. For a boundary, give
// the principal a sandbox (platform/sandbox).
package policy
