// Package command reads what a request would run: the words of an argv, or of
// every command in a shell line, also where they hide behind other commands
// (env, timeout, sh -c, find -exec, ssh, …).
//
//	r := command.Line(`cd web && env CI=1 timeout 60 npm test`)
//	for _, c := range r.Commands { … } // cd web; npm test
//
// It is a reader, not a judge: [Reading] says what is there, package policy what
// to do about it. It executes and opens nothing, and its answer is about the
// text alone. What a program does when it runs is out of its sight: a script, a
// Makefile, a package's "clean" target.
package command
