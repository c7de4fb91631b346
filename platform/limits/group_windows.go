package limits

import (
	"sync"

	"tether/platform/proc"
)

// carrier is a group whose bounds are set, and the job that applies them. The job stays
// open, so that the bounds stay in force from one terminal of the agent to the next.
type carrier struct {
	group Group
	job   *proc.Job
}

var made = struct {
	sync.Mutex
	all map[string]carrier
}{all: map[string]carrier{}}

// join sets the bounds. pty.Start puts a command into the job if its environment has the
// agent's tag.
func join(g Group, argv, env []string) ([]string, []string, error) {
	made.Lock()
	defer made.Unlock()
	c, ok := made.all[g.Name]
	if !ok {
		job, err := proc.AgentJob(g.Name)
		if err != nil {
			return nil, nil, err
		}
		c.job = job
	}
	if c.group != g {
		if err := c.job.Bound(g.Processes, g.Memory); err != nil {
			return nil, nil, err
		}
		c.group = g
	}
	made.all[g.Name] = c
	return argv, env, nil
}
