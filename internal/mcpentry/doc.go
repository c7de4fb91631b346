// Package mcpentry puts one MCP server into the configuration files of other programs, and takes it out again. A file keeps its
// comments, its order and everything else as it was written; an edit that cannot be made so is refused.
package mcpentry
