// Package redact decides which parts of a terminal's text leave the machine. It makes the
// view for observers at hosts, never the person's own.
//
// A [Filter] reads the text as it arrives and reports the ranges that must be masked
// ([Mask]): secrets, and control sequences that could harm an observer's terminal. A mask
// changes bytes and never their number. So every offset stays the same under any
// configuration and in any daemon, and a host that returns after a loss continues where
// it was.
//
// [Rules] say which secrets a filter looks for. They are immutable and shared by any
// number of filters.
//
// It is not a guarantee. A program that wants to send out a secret can write it in a form
// that nobody looks for; this package prevents accidents. docs/SECURITY.md states the
// promises.
package redact
