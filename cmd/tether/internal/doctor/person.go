package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/shell"
)

// slowKeyring is the duration above which a keyring counts as slow. Each of its calls is
// bounded by a second.
const slowKeyring = 300 * time.Millisecond

// checkKeyring reports where secrets are stored, and tests the keyring with an entry that
// it removes again.
func checkKeyring(_ context.Context, m *machine) []Check {
	c := Check{Name: "keyring", Result: OK, Doc: "docs/SECURITY.md"}
	kept := m.status.Secrets
	if kept == nil && os.Getenv(dirs.HomeVar) != "" || kept != nil && kept.Store == localapi.StoreFile && strings.HasPrefix(kept.Why, dirs.HomeVar) {
		c.Result, c.Reason = Skip, dirs.HomeVar+" is set: secrets are in a file below it"
		return []Check{c}
	}
	began := time.Now()
	err := m.keyring.Probe()
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case kept != nil && kept.Store == localapi.StoreFile:
		c.Reason = fmt.Sprintf("%s; secrets are in %s (0600)", kept.Why, kept.Path)
		if err == nil {
			c.Reason += "; a keyring is available now"
		}
		if kept.Why != saidSo && kept.Why != "you said so" { // the wording of earlier versions
			c.Result, c.Fix = Warn, "to move them to the keyring, unpair all hosts and pair again with --store keyring"
		}
	case err != nil && kept != nil:
		c.Result, c.Reason, c.Fix = Fail, "not available, but it holds the secrets: "+bareKeyring(err), unlockFix(err)
	case err != nil:
		c.Result, c.Reason, c.Fix = Warn, "not available, so pairing stores secrets in a file (0600): "+bareKeyring(err), unlockFix(err)
	case took > slowKeyring:
		c.Result, c.Reason, c.Fix = Warn, fmt.Sprintf("slow: storing and reading a secret takes %s", took), "check the keyring service, or pair with --store file"
	default:
		c.Reason = fmt.Sprintf("stores and returns secrets (%s)", took)
	}
	return []Check{c}
}

// saidSo is the recorded reason if the person chose to store secrets in a file.
const saidSo = "--store file was given"

// bareKeyring returns the error's text without the prefix that repeats the name of the
// check.
func bareKeyring(err error) string { return strings.TrimPrefix(err.Error(), "keyring: ") }

func unlockFix(err error) string {
	if errors.Is(err, keyring.ErrSilent) {
		return "unlock the keyring at the desktop; tether does not wait for it"
	}
	return "log in at a desktop with a keyring, or pair with --store file"
}

// slowLogin is the duration above which start-up files count as slow.
const slowLogin = 3 * time.Second

// checkLogin asks the login shell for its environment, as the daemon does.
func checkLogin(ctx context.Context, m *machine) []Check {
	c := Check{Name: "login environment", Result: OK, Doc: "docs/SHELL-INTEGRATION.md"}
	began := time.Now()
	env, err := m.login(ctx)
	took := time.Since(began).Round(100 * time.Millisecond)
	noPath := !slices.ContainsFunc(env, func(e string) bool { return len(e) > len("PATH=") && strings.EqualFold(e[:len("PATH=")], "PATH=") })
	switch {
	case errors.Is(err, shell.ErrUnsupported):
		c.Result, c.Reason, c.Fix = Warn, err.Error(), "terminals that the daemon starts itself get the daemon's environment: start the daemon from your shell"
	case err != nil:
		c.Result, c.Reason, c.Fix = Fail, err.Error(), "terminals that the daemon starts itself get its own environment; check the shell's start-up files, then run tether env --refresh"
	case noPath:
		c.Result, c.Reason, c.Fix = Fail, "the login environment has no PATH", "programs will not be found: check the shell's start-up files"
	case took > slowLogin:
		c.Result, c.Reason, c.Fix = Warn, fmt.Sprintf("the start-up files of %s take %s", shell.Login(), took), "make them faster: the daemon's first terminal waits for them, up to terminals.login_timeout"
	default:
		c.Reason = fmt.Sprintf("%d variables from %s in %s", len(env), shell.Login(), took)
	}
	return []Check{c}
}

// askLogin asks the person's login shell for its environment.
func askLogin(ctx context.Context) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	const patience = 20 * time.Second // of the 30 that Examine may take
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	env, err := shell.Environment(ctx, shell.Login(), self)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the start-up files of %s take more than %v", shell.Login(), patience)
	}
	return env, err
}

// checkAgents reports which installed agents have tether's MCP server in their
// configuration.
func checkAgents(_ context.Context, m *machine) []Check {
	return []Check{agentsCheck(Check{Name: "agents", Doc: "docs/MCP.md"}, m.Agents)}
}

// checkExecutors reports likewise which programs let agents that run elsewhere use this
// machine and tether on it.
func checkExecutors(_ context.Context, m *machine) []Check {
	c := agentsCheck(Check{Name: "agents elsewhere", Doc: "docs/AGENTS.md"}, m.Executors)
	if c.Result != Skip {
		c.Reason += "; codex exec-server and claude self-hosted-runner need more, see " + pagePath(c.Doc)
	}
	return []Check{c}
}

// agentsCheck completes a check of agents' files.
func agentsCheck(c Check, agents func() (configured, other, broken []string)) Check {
	know, lack, broken := agents()
	var parts []string
	for _, part := range []struct {
		text  string
		names []string
	}{{"configured for tether: ", know}, {"not configured for tether (tether setup agents does it): ", lack}, {"unknown: ", broken}} {
		if len(part.names) > 0 {
			parts = append(parts, part.text+strings.Join(part.names, ", "))
		}
	}
	c.Result, c.Reason = OK, strings.Join(parts, "; ")
	switch {
	case len(parts) == 0:
		c.Result, c.Reason = Skip, "none that is known is installed"
	case len(broken) > 0:
		c.Result, c.Fix = Warn, "correct the named file: its agent cannot read it either"
	}
	return c
}
