// Package progentry adds an entry that starts one program, such as an MCP server or a
// terminal's profile, to the configuration files of other programs, and removes it.
// Comments, order and everything else in a file stay unchanged; an edit that would change
// more is refused.
package progentry
