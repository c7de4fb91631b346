// Package start is the only way to start terminals. Every door uses it: the command line,
// user interfaces, MCP, ACP, hosts' sessions and the configuration.
//
//	s := start.New(start.Options{Access: pool.As, Policy: engine, Spec: specs.Spec, Confine: confiner.Confine})
//	h, err := s.Start(ctx, start.Request{Actor: actor, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorMCP, Command: argv, Cwd: dir}})
//
// A [Request] holds the actor and the command. [Starter.Start] asks the policy, lets
// [Specs] work out the argv and environment, lets [Confiner] put an agent's command into
// its sandbox and limits, and spawns it.
package start
