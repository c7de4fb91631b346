// Package answers deals with what a program asks its terminal, such as where the cursor
// is: who answers, what this process answers if nobody else does, and which input from an
// attached terminal is an answer and was typed by nobody.
package answers
