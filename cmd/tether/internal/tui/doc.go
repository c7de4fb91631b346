// Package tui is tether ui: all terminals on one screen, with the output of the selected
// one, and keys that act on terminals. The model is pure and owned by bubbletea's
// goroutine. It reaches the daemon through backend, in commands that bubbletea runs in
// goroutines of their own.
package tui
