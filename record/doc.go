// Package record has the parts of a terminal's recorded output that do not depend on how
// its text is stored. The daemon keeps raw bytes, the host keeps text as it came in
// JSON; both number marks, know the screen behind dropped text, and keep all terminals
// together within a bound.
//
// The parts have no lock, unless they say so: the lock of the log that owns them guards
// them. Package recordtest has the contract of both logs as a test.
package record
