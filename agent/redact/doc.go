// Package redact decides what of a terminal's text leaves the machine: it is the view of observers at hosts, never that of the
// person.
//
// A [Filter] reads the text as it comes and says which ranges of it are not to be shown as they are ([Mask]): secrets, and control
// sequences that could do something to who watches. A mask changes bytes and never their number, so that every offset stays what it
// was, whatever is configured and whichever daemon looks: a host that comes back after any loss goes on where it was.
//
// [Rules] are what a filter looks for. They are immutable and shared by any number of filters.
//
// It is not a guarantee. A program that wants to send out a secret can write it in a form that nobody looks for; this keeps accidents
// from leaving the machine. docs/SECURITY.md says what is promised.
package redact
