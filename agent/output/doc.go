// Package output keeps what one terminal has printed: its bytes, once, under raw offsets,
// and what follows from them. That is the views in which readers get the output, the
// marks between the bytes, the commands of a shell, the screen behind output that was
// dropped, what hosts and agents do not see, and what the next daemon needs of it. It
// knows nothing of the program that prints, nor of rights.
//
// The mutex of its owner guards a [Log], because much that its owner decides depends on
// the output in the same step. [Log.Append] shows all that happens to output.
package output
