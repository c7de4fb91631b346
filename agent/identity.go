package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"tether/agent/config"
	"tether/platform/secret"
)

// identityCause is the cause in status while a change of [identity] waits for the person.
const identityCause = "identity"

// ruleIdentity is the rule of the question about a change of [identity].
const ruleIdentity = "identity"

// approvedIdentity is the [identity] that the person has approved last, as the state
// directory has it.
type approvedIdentity struct {
	Version int      `json:"version"`
	Mine    []string `json:"mine"`
	Agents  []string `json:"agents"`
}

const approvedIdentityVersion = 1

// maxApprovedIdentity bounds the file in bytes: two lists of the longest entries.
const maxApprovedIdentity = 4 << 20

func (a *Agent) identityPath() string { return filepath.Join(a.cfg.Dirs.State, "identity.json") }

// openIdentity puts the approved [identity] into effect and, if the configuration has
// another one, asks the person about that until ctx ends. An agent can write the
// configuration, so a change has no effect before. wait waits for the end of the
// question.
func (a *Agent) openIdentity(ctx context.Context) (wait func()) {
	wanted, approved := a.settings.Identity, a.approvedIdentity()
	a.identity.Set(approved.Mine, approved.Agents)
	if wanted.Equal(approved) {
		return func() {}
	}
	done := make(chan struct{}) // closed at the end of the question
	go func() {
		defer close(done)
		a.askIdentity(ctx, wanted)
	}()
	return func() { <-done }
}

// approvedIdentity returns what the person has approved last. A file that cannot be read
// approves nothing.
func (a *Agent) approvedIdentity() config.Identity {
	data, err := secret.ReadFile(a.identityPath())
	var stored approvedIdentity
	if err == nil && len(data) <= maxApprovedIdentity {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn().Err(err).Msg("the approved identity cannot be read")
	}
	if err != nil || stored.Version != approvedIdentityVersion {
		return config.Identity{}
	}
	return config.Identity{Mine: stored.Mine, Agents: stored.Agents}
}

// askIdentity asks the person whether the changed [identity] is to take effect.
func (a *Agent) askIdentity(ctx context.Context, wanted config.Identity) {
	a.degraded.report(identityCause, "[identity] of the configuration has changed and is not in effect yet; tether approvals shows the question about it")
	defer a.degraded.report(identityCause, "")
	allow, err := a.policy.Confirm(ctx, ruleIdentity, wanted.String(), a.cfg.Dirs.Config, "it changes which programs count as you and which as agents; approve it only if you have changed it yourself")
	if err != nil || !allow {
		a.log.Info().Bool("denied", err == nil).Msg("the changed identity is not in effect")
		return
	}
	a.identity.Set(wanted.Mine, wanted.Agents)
	if err := secret.WriteJSON(a.identityPath(), approvedIdentity{approvedIdentityVersion, wanted.Mine, wanted.Agents}); err != nil {
		a.log.Error().Err(err).Msg("keep the approved identity")
		a.degraded.report(stateCause, fmt.Sprintf("the approved [identity] is not kept for the next daemon: %v", err))
	}
}
