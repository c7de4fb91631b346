package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"tether/events"
	"tether/host/agents"
	"tether/internal/jsonspan"
	"tether/internal/retry"
)

// eventsAt is the command tether-host events.
type eventsAt struct {
	hostURL
	patterns []string
	machine  string
	exit     bool
	asJSON   bool
	cursors  events.CursorFile

	subs []events.Request
	out  io.Writer
	err  io.Writer
}

func eventsCommand(stdout, stderr io.Writer) *cobra.Command {
	e := eventsAt{out: stdout, err: stderr}
	c := &cobra.Command{
		Use: "events [TERMINAL…]", Short: "print what happens in a host's terminals",
		Long: `Prints a line for each event in the terminals that machines lend to a host, or in those that are named, until it is interrupted: lines that match,
exits, failed commands, machines that go away and come back. Without --pattern and --exit it prints all but lines.

After a lost connection it continues where it was, and reports missing events on standard error. With --cursor-file, the next run continues, too.`,
		Args: func(*cobra.Command, []string) error { return nil },
		RunE: func(c *cobra.Command, args []string) error {
			if err := e.prepare(args); err != nil {
				return err
			}
			return e.run(c.Context())
		},
	}
	e.flags(c)
	f := c.Flags()
	f.StringArrayVar(&e.patterns, "pattern", nil, "a line matches this `REGEXP` (RE2); may be repeated")
	f.BoolVar(&e.exit, "exit", false, "a terminal has exited")
	f.StringVar(&e.machine, "machine", "", "only terminals of the machine `NAME`")
	f.BoolVar(&e.asJSON, "json", false, "print JSON, an MCP event per line")
	f.StringVar((*string)(&e.cursors), "cursor-file", "", "go on where the last run with this `FILE` ended")
	return c
}

// prepare makes the subscriptions.
func (e *eventsAt) prepare(terminals []string) error {
	if e.tokenFile == "-" {
		return &usageError{"cannot read the token from standard input", "give a file"}
	}
	if len(terminals) == 0 {
		terminals = []string{""}
	}
	all := e.exit || len(e.patterns) > 0
	for _, id := range terminals {
		add := func(name string, args map[string]any) {
			if id != "" {
				args["terminalId"] = id
			}
			if e.machine != "" {
				args["machine"] = e.machine
			}
			text, _ := json.Marshal(args) // strings
			e.subs = append(e.subs, events.Request{Name: name, Arguments: text})
		}
		for _, p := range e.patterns {
			add(events.Line, map[string]any{"pattern": p})
		}
		if e.exit || !all {
			add(events.Exited, map[string]any{})
		}
		if !all {
			add(events.CommandFinished, map[string]any{"failedOnly": true})
			if id == "" {
				add(events.MachineAway, map[string]any{})
				add(events.MachineBack, map[string]any{})
			}
		}
	}
	if len(e.subs) > events.DefaultStreams {
		return &usageError{fmt.Sprintf("these are %d conditions, at most %d can be watched at once", len(e.subs), events.DefaultStreams), "name fewer terminals, or none for all"}
	}
	return e.cursors.Recall(e.subs)
}

// Pauses between two tries to reach the host again.
const (
	firstPause = time.Second
	longPause  = 30 * time.Second
	// returning is how long machines may take to lend their terminals again to a host
	// that was restarted.
	returning = 2 * time.Minute
)

// run prints events until ctx ends, and reconnects when necessary.
func (e *eventsAt) run(ctx context.Context) error {
	connected, last := false, time.Now()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		heard, err := e.listen(ctx)
		if heard {
			connected, pause, last = true, firstPause, time.Now()
		}
		var refused *eventError
		var own *ownError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &own):
			return err
		case !connected, errors.As(err, &refused) && time.Since(last) > returning:
			return err
		}
		fmt.Fprintln(e.err, "tether-host: the connection to the host is lost; connecting again")
		if !retry.Wait(ctx, pause) {
			return nil
		}
	}
}

// eventError is the host's refusal of a subscription.
type eventError struct{ name, text string }

func (e *eventError) Error() string { return e.name + ": " + e.text }

// ownError is a failure of this program: an event that it could not print, or cursors
// that it could not write. Another connection does not help.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

// heardLine is a message from the host.
type heardLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// news is the common part of a stream's notifications.
type news struct {
	events.Event
	Cursor    string `json:"cursor"`
	Truncated bool   `json:"truncated"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error"`
	Meta struct {
		Sub int `json:"io.modelcontextprotocol/subscriptionId"`
	} `json:"_meta"`
}

// clientMeta describes this client in each request.
const clientMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tether-host events","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/events":{}}}}`

// listen handles the host's messages on one connection. heard reports whether the host
// has answered.
func (e *eventsAt) listen(ctx context.Context) (heard bool, err error) {
	conn, err := dialMCP(ctx, &e.hostURL)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := agents.NewLines(ctx, conn)
	defer lines.Close()
	for i := range e.subs {
		params, err := json.Marshal(map[string]any{"name": e.subs[i].Name, "arguments": e.subs[i].Arguments, "cursor": e.subs[i].Cursor, "_meta": json.RawMessage(clientMeta)})
		if err != nil {
			return false, err
		}
		if _, err := fmt.Fprintf(lines, `{"jsonrpc":"2.0","id":%d,"method":"events/stream","params":%s}`+"\n", i, params); err != nil {
			return false, err
		}
	}
	in := bufio.NewScanner(lines)
	in.Buffer(make([]byte, 64<<10), maxReply)
	open := len(e.subs)
	for in.Scan() {
		var m heardLine
		if jsonspan.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch {
		case m.Error != nil:
			return heard, &eventError{"the host", m.Error.Message}
		case strings.HasPrefix(m.Method, "notifications/events/"):
			heard = true
			if err := e.take(strings.TrimPrefix(m.Method, "notifications/events/"), m.Params); err != nil {
				return heard, &ownError{err}
			}
		case len(m.ID) > 0:
			if open--; open == 0 {
				return heard, &eventError{"the host", "all subscriptions are over"}
			}
		}
	}
	return heard, in.Err()
}

// take handles one notification.
func (e *eventsAt) take(kind string, params json.RawMessage) error {
	var n news
	if err := jsonspan.Unmarshal(params, &n); err != nil || n.Meta.Sub < 0 || n.Meta.Sub >= len(e.subs) {
		return nil // not for us
	}
	sub := &e.subs[n.Meta.Sub]
	switch {
	case kind == "terminated" && n.Error != nil:
		fmt.Fprintf(e.err, "tether-host: %s: %s\n", sub.Name, n.Error.Message)
	case kind == "active" && n.Truncated:
		fmt.Fprintf(e.err, "tether-host: some events of %s are missing: the output was no longer kept\n", sub.Name)
	case kind == "event":
		if err := e.print(&n.Event); err != nil {
			return err
		}
	}
	if n.Cursor == "" || sub.Cursor != nil && *sub.Cursor == n.Cursor {
		return nil
	}
	sub.Cursor = &n.Cursor
	if kind == "heartbeat" {
		return nil
	}
	return e.cursors.Remember(e.subs)
}

// maxEventLine bounds the printed text of an event, in characters.
const maxEventLine = 400

func (e *eventsAt) print(ev *events.Event) error {
	if e.asJSON {
		data, err := json.Marshal(ev)
		if err == nil {
			_, err = e.out.Write(append(data, '\n'))
		}
		return err
	}
	text := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, events.Text(ev)))
	_, err := fmt.Fprintln(e.out, string(text[:min(len(text), maxEventLine)]))
	return err
}
