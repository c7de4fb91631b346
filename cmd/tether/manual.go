package main

import (
	"tether/internal/manual"
	"tether/internal/version"
)

// book is what the manual says beyond the help of the commands.
func book() manual.Book {
	return manual.Book{Version: version.Text(),
		Names: map[string]string{"tether host": "tether-hosts"}, // tether-host is a program
		Also:  []string{"tether-host"}, Sections: []manual.Section{
			{Title: "EXIT STATUS", Text: `  0    done
  1    it failed; the message says why
  2    the command line or the configuration makes no sense
  3    the daemon is not running
  4    no such host is paired, it refused the credential, or the credential
       would travel in clear text
  5    the host cannot be reached
  6    denied, by the policy, to this agent, or without a sign of a person
  7    no such terminal, or a name that fits several
  8    timed out
  130  interrupted
  141  nobody read the output
  254  the daemon ended the connection to a terminal, or did not come back
  255  the terminal could not be attached to

run, shell and attach exit with the status of the command that ran in the
terminal, 128 + n if signal n ended it.`},
			{Title: "ENVIRONMENT", Text: `  TETHER_HOME        an absolute path, below which everything is kept
  TETHER_ALLOW_ROOT  1 lets the daemon run as root for this time, as in CI; it
                     then lends by name only, unless lend.as_root is true
  TETHER_TOKEN_FILE  a file with a token of yours, for scripts that run without
                     a terminal: tether token create --person NAME makes one

Every key of the configuration is a variable, too: TETHER_LEND_AS_ROOT is
lend.as_root. tether config view says where each value comes from.`},
			{Title: "FILES", Text: `tether config path prints where the configuration file is, tether status --json
where a daemon that runs has its socket and its log.`},
		}}
}
