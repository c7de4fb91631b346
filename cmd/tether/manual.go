package main

import "tether/internal/manual"

// book is what the manual says beyond the help of the commands.
func book() manual.Book {
	return manual.Book{Version: versionText(), Sections: []manual.Section{
		{Title: "EXIT STATUS", Text: `  0  fine
  1  failed
  2  the command line makes no sense
  3  the daemon is not running
  4  not paired, or the token was refused, or would travel in clear text
  5  the host cannot be reached
  6  denied
  7  no such terminal, or several
  8  timed out

run, shell and attach exit with the status of what ran in the terminal, 128 + n
if signal n ended it; with 254 if the daemon ended the connection, 255 if the
terminal could not be attached to.`},
		{Title: "ENVIRONMENT", Text: `  TETHER_HOME        an absolute path, below which everything is kept
  TETHER_ALLOW_ROOT  1 lets the daemon run as root, for containers

Every key of the configuration is a variable, too: TETHER_LEND_AS_ROOT is
lend.as_root. tether config view says where each value comes from.`},
		{Title: "FILES", Text: `tether config path prints where the configuration file is, tether status where the
daemon keeps what it knows and its log.`},
	}}
}
