package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"tether/agent/localapi"
)

// mcpTail is the most text that read_terminal returns unless the call asks for more, in bytes.
const mcpTail = 64 << 10

// mcpPart measures tool calls over standard input and output and over HTTP, in turn. One terminal has enough output to fill a read, another
// one a single line.
func mcpPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	full, err := r.printed(ctx, strings.Repeat("a line of ordinary output from a build, nearly eighty columns wide\r\n", 2*mcpTail/68))
	if err != nil {
		return nil, err
	}
	short, err := r.printed(ctx, "Server started on port 3000\r\n")
	if err != nil {
		return nil, err
	}
	lines, err := r.mcpLines(ctx, s.programs.daemon[0])
	if err != nil {
		return nil, r.said.explain(err)
	}
	defer lines.close()
	over, err := r.mcpHTTP(ctx)
	if err != nil {
		return nil, r.said.explain(err)
	}
	defer over.close()
	rows, err := measureCalls([]mcpDoor{lines, over}, []mcpCall{
		{"list", `"name":"list_terminals","arguments":{}`},
		{"read of a line", fmt.Sprintf(`"name":"read_terminal","arguments":{"terminalId":"%s"}`, short)},
		{"read of 64 KB", fmt.Sprintf(`"name":"read_terminal","arguments":{"terminalId":"%s","maxBytes":65536}`, full)},
	}, s.keys)
	return rows, r.said.explain(err)
}

// printed starts a terminal, waits until it has printed text, and returns its id.
func (r *rig) printed(ctx context.Context, text string) (string, error) {
	t, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: []string{"sh", "-c", `printf %s "$1"; exec sleep 3600`, "sh", text}, Env: r.env, Cwd: r.home})
	if err != nil {
		return "", err
	}
	_, err = poll(ctx, func() (struct{}, error) {
		now, err := r.door.Find(ctx, t.ID)
		if err == nil && now.Bytes < int64(len(text)) {
			err = errNotYet
		}
		return struct{}{}, err
	})
	return t.ID, err
}

// mcpCall is a tool call: its name in the table and its parameters.
type mcpCall struct{ name, params string }

// mcpDoor is an MCP session through one door.
type mcpDoor interface {
	// name is the door's name in the table.
	name() string
	// call sends a request, waits for the answer and returns its length in bytes.
	call(request string) (int, error)
	close()
}

const (
	mcpHello       = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	mcpInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	callsInTurn    = 20 // calls of each kind through one door before the other has its turn
)

// measureCalls makes n calls of each kind through each door, rounded up to whole turns.
func measureCalls(doors []mcpDoor, calls []mcpCall, n int) ([]row, error) {
	times := map[string][]float64{}
	for made := 0; made < n; made += callsInTurn {
		for _, d := range doors {
			for _, c := range calls {
				for i := range callsInTurn {
					began := time.Now()
					size, err := d.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, 2+made+i, c.params))
					if err == nil && size == 0 {
						err = io.ErrUnexpectedEOF
					}
					if err != nil {
						return nil, fmt.Errorf("%s over %s: %w", c.name, d.name(), err)
					}
					times[c.name+d.name()] = append(times[c.name+d.name()], millis(time.Since(began)))
				}
			}
		}
	}
	var rows []row
	for _, c := range calls {
		for _, d := range doors {
			rows = append(rows, quantiles("mcp", c.name+" over "+d.name(), times[c.name+d.name()])...)
		}
	}
	return rows, nil
}

// mcpProgram is a session with the program tether mcp.
type mcpProgram struct{ conversation }

func (r *rig) mcpLines(ctx context.Context, program string) (*mcpProgram, error) {
	c := &mcpProgram{conversation{cmd: exec.CommandContext(ctx, program, "mcp", "--as", "bench")}}
	c.cmd.Env, c.cmd.Stderr = append(r.env, "TETHER_ALLOW_ROOT=1"), &r.said
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, longLine)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := c.call(mcpHello); err != nil {
		return nil, err
	}
	_, err = io.WriteString(c.in, mcpInitialized+"\n")
	return c, err
}

func (c *mcpProgram) name() string { return "stdio" }

func (c *mcpProgram) call(request string) (int, error) {
	if _, err := io.WriteString(c.in, request+"\n"); err != nil {
		return 0, err
	}
	answer, err := c.out.ReadSlice('\n')
	return len(answer), err
}

// mcpClient is a session over HTTP on the daemon's socket.
type mcpClient struct {
	ctx     context.Context // of the requests
	http    *http.Client
	session string
}

func (r *rig) mcpHTTP(ctx context.Context) (*mcpClient, error) {
	c := &mcpClient{ctx: ctx, http: r.door.As("bench").HTTP()}
	if _, err := c.call(mcpHello); err != nil {
		return nil, err
	}
	_, err := c.post(mcpInitialized)
	return c, err
}

func (c *mcpClient) name() string { return "HTTP" }

func (c *mcpClient) call(request string) (int, error) {
	answer, err := c.post(request)
	if err == nil && !bytes.Contains(answer, []byte(`"result"`)) {
		err = fmt.Errorf("the answer is %.200q", answer)
	}
	return len(answer), err
}

func (c *mcpClient) post(body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, "http://"+localapi.Host+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the daemon answered %s", resp.Status)
	}
	return io.ReadAll(resp.Body)
}

func (c *mcpClient) close() {} // the rig closes its connections
