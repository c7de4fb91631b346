package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/host/agents"
	"tether/internal/loopback"
	"tether/jsonrpc/wsconn"
)

const (
	dialTime = 30 * time.Second
	maxLine  = 1 << 20 // bytes of one message from the agent
	maxReply = 32 << 20
	// lastAnswers is how long answers may take after the end of the agent's input.
	lastAnswers = 5 * time.Second
)

// hostURL has the flags of the commands that connect to a host.
type hostURL struct {
	url, tokenFile string
}

func (u *hostURL) flags(c *cobra.Command) {
	u.flagsIn(c.Flags())
}

func (u *hostURL) flagsIn(f flags) {
	f.StringVar(&u.url, "url", "ws://127.0.0.1:9187", "`URL` of the host")
	f.StringVar(&u.tokenFile, "token-file", "", "read the token from `FILE`; - is standard input")
}

// token returns the content of the token file; "" without one.
func (u *hostURL) token(stdin io.Reader) (string, error) {
	if u.tokenFile == "" {
		return "", nil
	}
	if u.tokenFile != "-" {
		return existingToken(u.tokenFile)
	}
	line, err := bufio.NewReader(io.LimitReader(stdin, maxLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("standard input: %w", err)
	}
	token := strings.TrimSpace(line)
	return token, checkToken("the token on standard input", token)
}

// at returns the URL of a path at the host, with a scheme of WebSockets or of HTTP. It
// refuses to send a token in clear text to another machine.
func (u *hostURL) at(path string, web, withToken bool) (string, error) {
	parsed, err := url.Parse(u.url)
	if err != nil || parsed.Host == "" {
		return "", &usageError{"--url is not the URL of a host", "use for example ws://127.0.0.1:9187 or wss://host.example"}
	}
	secure := parsed.Scheme == "wss" || parsed.Scheme == "https"
	if !secure && parsed.Scheme != "ws" && parsed.Scheme != "http" {
		return "", &usageError{fmt.Sprintf("--url has the scheme %.20q", parsed.Scheme), "use ws, wss, http or https"}
	}
	if withToken && !secure && !loopback.Is(parsed.Hostname()) {
		return "", &usageError{"the token would be sent in clear text to " + parsed.Host, "use wss:// or https://"}
	}
	parsed.Scheme = map[bool]string{false: "ws", true: "http"}[web]
	if secure {
		parsed.Scheme += "s"
	}
	parsed.RawQuery, parsed.Fragment = "", ""
	return parsed.JoinPath(path).String(), nil
}

func mcpCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var u hostURL
	c := &cobra.Command{
		Use: "mcp", Short: "serve a host's terminals to an agent over MCP (stdio)",
		Long: `Serves the Model Context Protocol on standard input and output. The agent can list the terminals of all machines at the
host, read them and wait for output, but not change them. Example configuration of an agent:

  {"mcpServers": {"terminals": {"command": "tether-host",
    "args": ["mcp", "--url", "wss://host.example", "--token-file", "/home/me/agent.token"]}}}

Agents that speak MCP over HTTP do not need this command: the host serves /mcp, with the token as Authorization: Bearer.`,
		Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			if u.tokenFile == "-" {
				return &usageError{"cannot read the token from standard input, which carries MCP", "give a file"}
			}
			return mcpBridge(c.Context(), &u, stdin, stdout)
		},
	}
	u.flags(c)
	return c
}

// mcpBridge passes lines between the agent and the host until one of them ends.
func mcpBridge(ctx context.Context, u *hostURL, stdin io.Reader, stdout io.Writer) error {
	conn, err := dialMCP(ctx, u)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := agents.NewLines(ctx, conn)
	defer lines.Close()
	go func() { // may end only with the process: a read from standard input cannot be interrupted
		if sendLines(lines, stdin) == nil {
			time.AfterFunc(lastAnswers, cancel)
		}
	}()
	_, err = io.Copy(stdout, lines)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the host ended the session: %w", err)
	}
	return nil
}

func dialMCP(ctx context.Context, u *hostURL) (*wsconn.Conn, error) {
	token, err := u.token(nil)
	if err != nil {
		return nil, err
	}
	target, err := u.at("mcp", false, token != "")
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := wsconn.Dial(ctx, target, wsconn.Options{ReadLimit: maxReply, HTTPHeader: header})
	if refused, ok := errors.AsType[*wsconn.DialError](err); ok {
		switch refused.Status {
		case http.StatusUnauthorized:
			return nil, errors.New("the host requires a token: give one with --token-file FILE (tether-host token create NAME --role agent creates one)")
		case http.StatusForbidden:
			return nil, errors.New("the host refused the token: it is invalid, revoked or expired, or has neither the role agent nor observer")
		}
	}
	return conn, err
}

// sendLines passes the agent's lines to the host until the input ends. A line that is too
// long ends the session, because it cannot be answered.
func sendLines(to *agents.Lines, from io.Reader) error {
	in := bufio.NewScanner(from)
	in.Buffer(make([]byte, 64<<10), maxLine)
	for in.Scan() {
		if len(strings.TrimSpace(in.Text())) == 0 {
			continue
		}
		if _, err := to.Write(in.Bytes()); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "tether-host: standard input:", err)
	}
	return to.CloseWrite()
}
