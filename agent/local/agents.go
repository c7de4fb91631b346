package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/start"
	"tether/platform/proc"
	"tether/platform/secret"
)

// AgentRecord is a process that is an agent: it and all its descendants act as that agent
// until it ends, even if the proxy and the daemon end sooner.
type AgentRecord struct {
	proc.ID   `json:"-"` // in the file's name
	Version   int        `json:"version"`
	Principal string     `json:"principal"`
	// Editor says that the process has terminals of its own, in which the person types:
	// only processes without a controlling terminal are the agent's then.
	Editor bool `json:"editor,omitempty"`
	// Confined says that it runs in a sandbox.
	Confined bool `json:"confined,omitempty"`
	// Group is the process group whose leader is the process itself or a wrapper that has
	// started it; else 0.
	Group int `json:"group,omitempty"`
}

const agentRecordVersion = 1

// maxAgentRecord bounds a record in bytes, maxAgentRecords how many records are read: far
// more than there are agents at a time.
const (
	maxAgentRecord  = 4 << 10
	maxAgentRecords = 4096
)

// Agents are the records of agents' processes. Each is a file in the state directory, so
// that tether acp can write one even if no daemon runs. It is safe for concurrent use,
// also by several processes. The zero value stores nothing.
type Agents struct {
	dir  string
	used atomic.Bool
}

// OpenAgents returns the records in the state directory.
func OpenAgents(state string) *Agents { return &Agents{dir: filepath.Join(state, "agents")} }

// usedName is the file that exists once an agent has used this home.
const usedName = "used"

// Record records that a process is an agent. A recorded process keeps its record.
func (a *Agents) Record(r AgentRecord) error {
	if a.dir == "" {
		return nil
	}
	r.Version = agentRecordVersion
	if err := a.Use(); err != nil {
		return err
	}
	path := filepath.Join(a.dir, fmt.Sprintf("%d-%d", r.Pid, r.Start))
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := secret.WriteJSON(path, r); err != nil {
		return fmt.Errorf("record agent %s: %w", r.Principal, err)
	}
	return nil
}

// List returns the agents whose processes run. Records of others are removed.
func (a *Agents) List() []AgentRecord {
	if a.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return nil // there has been none
	}
	var all []AgentRecord
	for _, e := range entries[:min(len(entries), maxAgentRecords)] {
		pid, start, ok := strings.Cut(e.Name(), "-")
		var r AgentRecord
		var err, err2 error
		r.Pid, err = strconv.Atoi(pid)
		r.Start, err2 = strconv.ParseUint(start, 10, 64)
		if !ok || err != nil || err2 != nil {
			continue
		}
		path := filepath.Join(a.dir, e.Name())
		if p, err := proc.Lookup(r.Pid); err != nil || p.Start != r.Start || p.Zombie {
			_ = os.Remove(path) // if it fails, the next List tries again
			continue
		}
		if data, err := secret.ReadFile(path); err != nil || len(data) > maxAgentRecord || json.Unmarshal(data, &r) != nil || r.Version != agentRecordVersion || checkPrincipal(r.Principal) != nil {
			r.Principal = unreadAgent // edited by somebody, or of a later version: it is an agent in any case
		}
		all = append(all, r)
	}
	return all
}

// unreadAgent is the principal of a process whose record cannot be read.
const unreadAgent = "unknown"

// Use records that an agent has used this home.
func (a *Agents) Use() error {
	if a.used.Load() {
		return nil
	}
	if a.dir != "" && !a.Used() {
		if err := secret.Dir(a.dir); err != nil {
			return err
		}
		if err := secret.WriteFile(filepath.Join(a.dir, usedName), nil); err != nil {
			return err
		}
	}
	a.used.Store(true)
	return nil
}

// Used reports whether an agent has ever used this home. If that cannot be found out, it
// returns true.
func (a *Agents) Used() bool {
	if a.used.Load() || a.dir == "" {
		return a.used.Load()
	}
	_, err := os.Lstat(filepath.Join(a.dir, usedName))
	return !errors.Is(err, fs.ErrNotExist)
}

// doors are the doors that a program may name as those of its request.
var doors = []string{policy.DoorCLI, policy.DoorACP}

// asAgent turns the request into an agent's at the given door. It refuses options that
// only the person may choose.
func asAgent(r *start.Request, door string) error {
	r.Door = cmp.Or(door, policy.DoorCLI)
	switch {
	case r.Private:
		return &localapi.Error{Code: localapi.CodeDenied, Message: "an agent's terminal cannot be private"}
	case len(r.LendTo) > 0:
		return &localapi.Error{Code: localapi.CodeDenied, Message: "an agent may not choose the hosts that see its terminal", Hint: "leave lend_to out, or let the person lend it"}
	case !slices.Contains(doors, r.Door):
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "door must be " + strings.Join(doors, " or ")}
	}
	r.Background = r.Door != policy.DoorACP // commands over ACP end with their tool call, and the editor shows them
	return nil
}
