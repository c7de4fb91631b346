// Package problems finds the problems that compilers, linters, test runners and
// interpreters report in a terminal's output: file, line, severity and message. Matchers
// are data in the shape of VS Code's problem matchers: those of known tools are in the
// directory matchers, others come from the configuration. The package is pure: no I/O, no
// clock, no goroutine; it opens no file that a problem names.
//
//	t := problems.NewTracker(problems.Builtin(), 0)
//	t.Begin("make", "/home/me/app")
//	t.Write(0, output)
//	t.End()
//	for _, p := range t.Problems(0) {
//	fmt.Println(p.File, p.Line, p.Severity, p.Message)
//	}
package problems
