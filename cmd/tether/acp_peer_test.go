package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// acpPeer is an agent that takes the steps of testdata/acp/agent.mjs which every system
// can take, without Node.
func acpPeer() {
	p := &peer{in: bufio.NewScanner(os.Stdin)}
	p.in.Buffer(nil, 1<<20)
	for p.in.Scan() {
		if err := p.handle(p.in.Bytes()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

type peer struct {
	in       *bufio.Scanner
	session  string
	terminal string
	calls    int
}

func (p *peer) say(v object) {
	v["jsonrpc"] = "2.0"
	line, _ := json.Marshal(v)
	fmt.Printf("%s\n", line)
}

func (p *peer) handle(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	result := object{}
	switch m.Method {
	case "initialize":
		result = object{"protocolVersion": 1, "agentCapabilities": object{"loadSession": false}}
	case "session/new":
		p.session = "session-1"
		result["sessionId"] = p.session
	case "session/prompt":
		if err := p.take(m.Params); err != nil {
			return err
		}
		result["stopReason"] = "end_turn"
	default:
		return nil
	}
	p.say(object{"id": m.ID, "result": result})
	return nil
}

// take carries out a prompt and reports the results.
func (p *peer) take(params json.RawMessage) error {
	var said struct{ Prompt []struct{ Text string } }
	if err := json.Unmarshal(params, &said); err != nil || len(said.Prompt) == 0 {
		return fmt.Errorf("prompt %s: %w", params, err)
	}
	var steps []struct {
		Do     string
		Params object
	}
	if err := json.Unmarshal([]byte(said.Prompt[0].Text), &steps); err != nil {
		return err
	}
	methods := map[string]string{"create": "terminal/create", "wait": "terminal/wait_for_exit", "output": "terminal/output",
		"kill": "terminal/kill", "release": "terminal/release"}
	var results []json.RawMessage
	for _, step := range steps {
		args := object{"sessionId": p.session, "terminalId": p.terminal}
		if step.Do == "create" {
			delete(args, "terminalId")
		}
		for k, v := range step.Params {
			args[k] = v
		}
		result, err := p.call(methods[step.Do], args)
		if err != nil {
			return fmt.Errorf("%s: %w", step.Do, err)
		}
		if step.Do == "create" {
			var made struct{ TerminalID string }
			_ = json.Unmarshal(result, &made)
			p.terminal = made.TerminalID
		}
		results = append(results, result)
	}
	text, _ := json.Marshal(results)
	p.say(object{"method": "session/update", "params": object{"sessionId": p.session, "update": object{
		"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": string(text)}}}})
	return nil
}

// call asks the editor and waits for its answer, the only line that may come meanwhile.
func (p *peer) call(method string, params object) (json.RawMessage, error) {
	p.calls++
	p.say(object{"id": p.calls, "method": method, "params": params})
	if !p.in.Scan() {
		return nil, errors.New("the editor has gone")
	}
	var m struct {
		Result json.RawMessage
		Error  *jsonrpc.Error
	}
	if err := json.Unmarshal(p.in.Bytes(), &m); err != nil {
		return nil, err
	}
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// found is the path of a program of these tests, which is not on the PATH of a fresh
// login.
func found(t *testing.T, name string) string {
	t.Helper()
	return must.Get(exec.LookPath(name))(t)
}

// TestACPPeer is a conversation about commands that every system has.
func TestACPPeer(t *testing.T) {
	e := editAs(t, "", []string{"--as", "peer"}, []string{"acppeer"}, nil).opens(object{})
	var hexed string
	args := []string{"a b", `"quoted"`, `c:\dir\`, "%PATH%", "&|", "grün"}
	for _, a := range args {
		hexed += "<" + hex.EncodeToString([]byte(a)) + ">"
	}
	for _, c := range []struct {
		name         string
		params       object
		output, exit string
		truncated    bool
	}{
		{"arguments", object{"command": "argv", "args": args}, hexed + "\n", "0", false},
		{"an exit code", object{"command": "does", "args": []string{"exit:7"}}, "", "7", false},
		{"the end of much", object{"command": "flood", "args": []string{"500"}, "outputByteLimit": 18}, "line 498\nline 499\n", "0", true},
	} {
		c.params["command"] = found(t, c.params["command"].(string))
		end := e.runs(c.params)
		if *end.Output != c.output || end.ExitStatus.String() != c.exit || end.Truncated != c.truncated {
			t.Errorf("%s: %q, exit %s, truncated %v; want %q, %s, %v", c.name, *end.Output, end.ExitStatus, end.Truncated, c.output, c.exit, c.truncated)
		}
	}
	r := e.does(object{"do": "create", "params": object{"command": found(t, "does"), "args": []string{"after:1h"}}}, object{"do": "kill"},
		object{"do": "wait"}, object{"do": "release"})
	if !strings.Contains(string(r[2]), "exitCode") {
		t.Errorf("after kill: %s", r[2])
	}
	if status := e.leaves(); status != 0 {
		t.Errorf("exit status %d; tether said:\n%s", status, e.stderr.String())
	}
}
