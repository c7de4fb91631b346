// Package output keeps what one terminal has printed: its bytes, once, under raw offsets,
// and what follows from them. That is the views in which readers get the output, the
// marks between the bytes, the screen behind output that was dropped, and what hosts and
// agents do not see. It knows nothing of the program that prints, nor of rights.
//
// A [Log] has no lock: that of its owner guards it, and everything that it returns.
package output
