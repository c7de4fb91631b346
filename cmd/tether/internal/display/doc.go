// Package display formats text for people: the daemon, terminals, lists, questions, sizes
// and times. It makes text of programs and hosts printable, so that the text cannot act
// on the person's terminal. It keeps no state and prints nothing.
package display
