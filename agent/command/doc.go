// Package command finds the commands that a request would run: the words of an argv, or
// of every command in a shell line, even behind other commands (env, timeout, sh -c, find
// -exec, ssh, …).
//
//	r := command.Line(`cd web && env CI=1 timeout 60 npm test`)
//	for _, c := range r.Commands { … } // cd web; npm test
//
// It reads and does not judge: a [Reading] lists the commands, package policy decides
// about them. It executes and opens nothing, and its answer depends on the text alone. It
// cannot see the effect of a running program: of a script, a Makefile, a package's
// "clean" target.
package command
