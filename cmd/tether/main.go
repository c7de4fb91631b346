// Command tether lends the terminals of this machine to agent hosts: the daemon and the command line in one.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "usage: tether COMMAND …")
	os.Exit(2)
}
