package acp

import (
	"bytes"

	"tether/internal/jsonspan"
)

// executed watches for tool calls that run commands, to notice agents that run commands
// themselves. The zero value is ready. It is not safe for concurrent use.
type executed struct {
	open map[callKey]bool // calls of kind "execute" that have not ended; at most maxCalls
}

// An update is decoded only if it contains one of these. The last two matter only while
// calls are open.
var (
	mentionsExecute   = []byte(`"execute"`)
	mentionsCompleted = []byte(`"completed"`)
	mentionsFailed    = []byte(`"failed"`)
)

// saw reads the parameters of a session/update. It reports whether they complete a call
// that ran a command. A call that failed may have run none, for instance because the
// person refused it.
func (e *executed) saw(params []byte) bool {
	if !bytes.Contains(params, mentionsExecute) &&
		(len(e.open) == 0 || !bytes.Contains(params, mentionsCompleted) && !bytes.Contains(params, mentionsFailed)) {
		return false
	}
	var p struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			SessionUpdate string `json:"sessionUpdate"`
			ToolCallID    string `json:"toolCallId"`
			Kind          string `json:"kind"`
			Status        string `json:"status"`
		} `json:"update"`
	}
	if jsonspan.Unmarshal(params, &p) != nil || p.Update.SessionUpdate != "tool_call" && p.Update.SessionUpdate != "tool_call_update" {
		return false
	}
	key := callKey{p.SessionID, p.Update.ToolCallID}
	if p.Update.Kind == "execute" && len(e.open) < maxCalls {
		if e.open == nil {
			e.open = map[callKey]bool{}
		}
		e.open[key] = true
	}
	ran := e.open[key] && p.Update.Status == "completed"
	if p.Update.Status == "completed" || p.Update.Status == "failed" {
		delete(e.open, key)
	}
	return ran
}
