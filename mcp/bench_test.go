package mcp_test

import (
	"context"
	"net"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// BenchmarkRead measures a read of 64 KB by the SDK's own client over a pipe.
func BenchmarkRead(b *testing.B) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerUser).print(strings.Repeat("a line of \x1b[32mordinary\x1b[0m output from a build, nearly eighty columns wide\r\n", 2000))
	s := mcp.New(mcp.Options{Tools: toolsOver(f)})
	defer s.Close()
	here, there := net.Pipe()
	go s.Serve(context.Background(), there)
	c := must.Get(sdk.NewClient(&sdk.Implementation{Name: "b", Version: "1"}, nil).Connect(b.Context(), &sdk.IOTransport{Reader: here, Writer: here}, nil))(b)
	defer c.Close()
	for b.Loop() {
		must.Get(c.CallTool(b.Context(), &sdk.CallToolParams{Name: "read_terminal", Arguments: m{"terminalId": "pty-a"}}))(b)
	}
}
