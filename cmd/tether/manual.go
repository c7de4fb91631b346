package main

import (
	"tether/internal/manual"
	"tether/internal/version"
)

// book has the text of the manual that is not in the help of the commands.
func book() manual.Book {
	return manual.Book{Version: version.Text(),
		Names: map[string]string{"tether host": "tether-hosts"}, // tether-host is a program
		Also:  []string{"tether-host"}, Sections: []manual.Section{
			{Title: "EXIT STATUS", Text: `  0    success
  1    failure; the message gives the reason
  2    invalid command line or configuration
  3    the daemon is not running
  4    the host is not paired, refused the credential, or would get it over
       an unencrypted connection
  5    the host cannot be reached
  6    denied by the policy, to this agent, or without a sign of a person
  7    no such terminal, or an ambiguous name
  8    timed out
  130  interrupted
  141  the output was closed before everything was written
  254  the daemon ended the connection to a terminal, and none came back
  255  cannot attach to the terminal

run, shell and attach exit with the status of the command in the terminal, or
with 128 + n if signal n ended the command.`},
			{Title: "ENVIRONMENT", Text: `  TETHER_HOME        the absolute path of the directory for all of tether's files
  TETHER_ALLOW_ROOT  1 allows the daemon to run as root this time, as in CI; it
                     then lends by name only, unless lend.as_root is true
  TETHER_TOKEN_FILE  a file with one of your tokens, for scripts that run without
                     a terminal; tether token create --person NAME creates one

In containers, TETHER_LEND_AS_ROOT sets lend.as_root and TETHER_LOCAL_LISTEN
local.listen. tether config view shows where each value comes from.`},
			{Title: "FILES", Text: `tether config path prints the path of the configuration file, tether status --json
the paths of the running daemon's socket and log.`},
		}}
}
