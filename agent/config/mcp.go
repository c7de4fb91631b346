package config

// MCP is about the terminals that agents start in the background through MCP. How many they may start is the policy's, see [PolicyLimits].
type MCP struct {
	// IdleTimeout is how long one may be without output and input before it is ended.
	IdleTimeout Duration `toml:"idle_timeout" range:"10s..720h"`
}
