// Package start is the one way in which terminals are started. Every door comes
// here: the command line, user interfaces, MCP, ACP, hosts' sessions and the
// configuration.
//
//	s := start.New(start.Options{Access: pool.As, Policy: engine, Spec: specs.Spec, Confine: confiner.Confine})
//	h, err := s.Start(ctx, start.Request{Actor: actor, Door: policy.DoorMCP, Command: argv, Cwd: dir})
//
// A [Request] says who wants to start what. [Starter.Start] asks the policy, has
// [Specs] work out what is run and in which environment, has [Confiner] put an
// agent's command into its sandbox and limits, and spawns it.
package start
