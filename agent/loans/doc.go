// Package loans has the loans of a terminal: to which hosts it is lent until when, who
// may watch there, with which links, and which ports they may use. It decides nothing of
// who may lend, and talks to no host.
package loans
