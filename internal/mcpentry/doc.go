// Package mcpentry adds one MCP server to the configuration files of other programs, and
// removes it. Comments, order and everything else in a file stay unchanged; an edit that
// would change more is refused.
package mcpentry
