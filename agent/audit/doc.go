// Package audit keeps a log that shows whether it was changed afterwards: lines of JSON,
// each with its number and the hash of the one before.
//
//	l := audit.New(audit.Options{Path: filepath.Join(state, "audit.jsonl")})
//	err := l.Append(event) // anything that encodes as a JSON object
//	report, err := audit.Verify(path, nil)
//
// A line is
//
//	{"n":7, …the object's fields… ,"prev":"<hash of line 6>","hash":"<hash>"}
//
// without the blanks, where hash is the SHA-256, in hex, of the line's bytes before
// ,"hash". So [Verify] needs only the line as it is in the file, and finds any change of
// a byte, and lines that were removed, added or exchanged. Line 1 has a prev of zeros.
//
// A chain does not know its own end. The last number and hash are therefore kept twice
// more: in a small file beside the log, and in the memory of the daemon that writes it. A
// program that can write all of these files can also forge them: the log reveals
// accidents and visitors, not an attacker with the user's rights and patience. Against
// that, copy the hash that Verify reports to another machine.
//
// The log is bounded. A full file becomes NAME.1, the former NAME.1 becomes NAME.2 and so
// on; the chain continues from file to file, and the last line of a full file names the
// oldest line that will be left.
package audit
