package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

const (
	floorForward = 0.5 // ms that the proxy adds to a forwarded line, p99

	linesInTurn = 50      // lines sent through one path before the other has its turn
	longLine    = 1 << 20 // bytes of a long line
)

// acpPart sends lines to an agent that echoes them, directly and through the proxy, in turn.
func acpPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	bare, err := r.talk(ctx, "cat")
	if err != nil {
		return nil, err
	}
	defer bare.close()
	proxied, err := r.talk(ctx, s.programs.daemon[0], "acp", "--", "cat")
	if err != nil {
		return nil, err
	}
	defer proxied.close()
	rows, err := measureLines(bare, proxied, s.keys)
	if err != nil {
		return nil, r.said.explain(err)
	}
	long, err := measureLongLines(bare, proxied, s)
	return append(rows, long...), r.said.explain(err)
}

// conversation is an agent's standard input and output.
type conversation struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// talk starts an agent and sends initialize, as an editor that shows terminals does.
func (r *rig) talk(ctx context.Context, argv ...string) (*conversation, error) {
	c := &conversation{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
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
	_, err = c.exchange([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{"terminal_output":true}}}}` + "\n"))
	return c, err
}

func (c *conversation) close() {
	c.in.Close()
	_ = c.cmd.Wait() // how it ends does not matter
}

// exchange sends a line and waits for the answer.
func (c *conversation) exchange(line []byte) (time.Duration, error) {
	began := time.Now()
	if _, err := c.in.Write(line); err != nil {
		return 0, err
	}
	if err := c.hear(); err != nil {
		return 0, fmt.Errorf("the agent's answer: %w", err)
	}
	return time.Since(began), nil
}

// hear reads a line.
func (c *conversation) hear() error {
	for {
		_, err := c.out.ReadSlice('\n')
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}

// chunkLine returns the kind of line that agents send most, with about that many bytes of text.
func chunkLine(text int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}`+"\n",
		strings.Repeat(`word \"quoted\" and\n`, text/20))
}

func measureLines(bare, proxied *conversation, lines int) ([]row, error) {
	line := chunkLine(200)
	times := map[*conversation][]float64{}
	for sent := 0; sent < lines; sent += linesInTurn {
		for _, c := range []*conversation{bare, proxied} {
			for range linesInTurn {
				d, err := c.exchange(line)
				if err != nil {
					return nil, err
				}
				times[c] = append(times[c], millis(d))
			}
		}
	}
	const part = "acp proxy"
	rows := append(quantiles(part, "round trip of a line, agent alone", times[bare]), quantiles(part, "through the proxy", times[proxied])...)
	added := func(q float64) float64 { return (quantile(times[proxied], q) - quantile(times[bare], q)) / 2 }
	return append(rows,
		row{Part: part, Name: "added per forwarded line p50", Value: added(0.5), Unit: "ms", Note: "half of the difference"},
		row{Part: part, Name: "added per forwarded line p99", Value: added(0.99), Unit: "ms"}.most(floorForward)), nil
}

// measureLongLines sends long lines without waiting for each.
func measureLongLines(bare, proxied *conversation, s settings) ([]row, error) {
	line := chunkLine(longLine)
	rates := map[*conversation][]float64{}
	for range s.rounds {
		for _, c := range []*conversation{bare, proxied} {
			rate, err := c.rate(line, s.megabytes)
			if err != nil {
				return nil, err
			}
			rates[c] = append(rates[c], rate)
		}
	}
	const part = "acp proxy"
	alone, through := median(rates[bare]), median(rates[proxied])
	return []row{
		{Part: part, Name: "1 MiB lines, there and back", Value: through, Unit: "MB/s", Note: fmt.Sprintf("agent alone %s MB/s", digits(alone))},
		{Part: part, Name: "of the agent alone", Value: 100 * through / alone, Unit: "%"},
	}, nil
}

// rate sends a line again and again, for about that many megabytes, and returns the speed in MB/s.
func (c *conversation) rate(line []byte, megabytes int) (float64, error) {
	n := megabytes*1e6/len(line) + 1
	sent := make(chan error, 1) // one slot: nobody receives if reading has failed
	began := time.Now()
	go func() {
		for range n {
			if _, err := c.in.Write(line); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for range n {
		if err := c.hear(); err != nil {
			return 0, err
		}
	}
	took := time.Since(began).Seconds()
	return float64(n*len(line)) / 1e6 / took, <-sent
}
