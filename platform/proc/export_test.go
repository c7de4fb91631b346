//go:build linux || darwin

package proc

// MarkEach is the slow way of CloseOnExec.
var MarkEach = markEach
