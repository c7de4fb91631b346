// Package tui is tether ui: all terminals on one screen of the person's, with the output of the selected one, and keys for what can be done
// with them. The model is pure and owned by bubbletea's goroutine; it reaches the daemon through backend, from goroutines of its commands.
package tui
