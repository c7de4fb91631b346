// Command tether-host is a reference agent host, to which terminals are lent.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "usage: tether-host [--listen ADDRESS] …")
	os.Exit(2)
}
