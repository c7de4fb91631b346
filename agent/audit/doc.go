// Package audit keeps a log that shows whether it was changed afterwards: lines
// of JSON, each with its number and the hash of the one before.
//
//	l := audit.New(audit.Options{Path: filepath.Join(state, "audit.jsonl")})
//	err := l.Append(event) // anything that encodes as a JSON object
//	report, err := audit.Verify(path, nil)
//
// A line is
//
//	{"n":7, …the object's fields… ,"prev":"<hash of line 6>","hash":"<hash>"}
//
// without the blanks, where hash is the SHA-256, in hex, of the line's bytes
// before ,"hash". So [Verify] needs no other form of the line than the one that is
// there, and finds any change of a byte, and lines that were removed, added or
// exchanged. Line 1 has a prev of zeros.
//
// A chain does not know its own end. The last number and hash are therefore kept
// twice more: in a small file beside the log, and in the memory of the daemon
// that writes it. Who can write all of these files can also forge them: the
// log convicts accidents and visitors, not somebody with the user's rights and
// patience. For that, copy the hash that Verify reports to another machine.
//
// The log is bounded. A full file becomes NAME.1, that one NAME.2 and so on; the
// chain goes on from file to file, and the last line of a full file says which
// line will be the oldest one left.
package audit
