// Package mcpentry puts one MCP server into the configuration files of other programs, and takes it out again. A file keeps its comments,
// its order and everything else unchanged; an edit that would change more is refused.
package mcpentry
