// Package terminals has only a test: a shell that tether shell --window runs in a window
// of a real terminal program is as it is without tether.
//
// The test opens two windows of the same program on an X server without a screen, one
// with the shell itself and one with tether's, does the same in both, and compares. It
// needs the programs that scripts/test-tools.sh installs, and is skipped where they are
// missing.
package terminals
