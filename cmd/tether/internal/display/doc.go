// Package display formats what the commands show to people: the daemon, terminals, lists, questions, sizes and times. Text of programs and
// hosts is made printable here, so that it cannot act on the person's terminal. It keeps no state and prints nothing.
package display
