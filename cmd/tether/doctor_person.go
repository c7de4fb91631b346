package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"tether/agent/local"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/shell"
)

// slowKeyring is when a keyring that answers is worth a word: each call has a second.
const slowKeyring = 300 * time.Millisecond

// checkKeyring looks where secrets are, and whether the keyring can be used for them. What it puts in it takes out again.
func checkKeyring(_ context.Context, p *patient) []check {
	c := check{Name: "keyring", Result: checkOK, Doc: "docs/SECURITY.md"}
	kept := p.status.Secrets
	if kept == nil && os.Getenv(dirs.HomeVar) != "" || kept != nil && kept.Store == local.StoreFile && strings.HasPrefix(kept.Why, dirs.HomeVar) {
		c.Result, c.Reason = checkSkip, dirs.HomeVar+" is set: secrets are kept in a file below it"
		return []check{c}
	}
	began := time.Now()
	err := p.keyring.Probe()
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case kept != nil && kept.Store == local.StoreFile:
		c.Reason = fmt.Sprintf("secrets are in %s, which only you can read: %s", kept.Path, kept.Why)
		if err == nil {
			c.Reason += "; the keyring can be used by now"
		}
		if kept.Why != saidSo && kept.Why != "you said so" { // as earlier versions wrote it
			c.Result, c.Fix = checkWarn, "to keep them in the keyring, unpair all hosts and pair again with --store keyring"
		}
	case err != nil && kept != nil:
		c.Result, c.Reason, c.Fix = checkFail, "secrets are in it, and it cannot be used: "+err.Error(), unlockFix(err)
	case err != nil:
		c.Result, c.Reason, c.Fix = checkWarn, "it cannot be used, so pairing keeps secrets in a file that only you can read: "+err.Error(), unlockFix(err)
	case took > slowKeyring:
		c.Result, c.Reason, c.Fix = checkWarn, fmt.Sprintf("it takes %s to keep and give back a secret", took), "what serves it is slow; --store file does without"
	default:
		c.Reason = fmt.Sprintf("it keeps what it is given (%s)", took)
	}
	return []check{c}
}

// saidSo is why secrets are in a file if the person wants it.
const saidSo = "--store file was given"

func unlockFix(err error) string {
	if errors.Is(err, keyring.ErrSilent) {
		return "unlock it, at the desktop or by logging in there; it is not waited for"
	}
	return "log in at a desktop with a keyring, or say --store file when you pair"
}

// slowLogin is when start-up files delay what is started for the first time.
const slowLogin = 3 * time.Second

// checkLogin asks the login shell for its environment, as the daemon does.
func checkLogin(ctx context.Context, p *patient) []check {
	c := check{Name: "login environment", Result: checkOK, Doc: "docs/SHELL-INTEGRATION.md"}
	began := time.Now()
	env, err := p.login(ctx)
	took := time.Since(began).Round(100 * time.Millisecond)
	noPath := !slices.ContainsFunc(env, func(e string) bool { return len(e) > len("PATH=") && strings.EqualFold(e[:len("PATH=")], "PATH=") })
	switch {
	case errors.Is(err, shell.ErrUnsupported):
		c.Result, c.Reason, c.Fix = checkWarn, err.Error(), "terminals that the daemon starts by itself get the daemon's environment: start it from your shell"
	case err != nil:
		c.Result, c.Reason, c.Fix = checkFail, err.Error(), "terminals that the daemon starts by itself get its own environment; look at the shell's start-up files, then tether env --refresh"
	case noPath:
		c.Result, c.Reason, c.Fix = checkFail, "a login has no PATH", "programs will not be found: look at the shell's start-up files"
	case took > slowLogin:
		c.Result, c.Reason, c.Fix = checkWarn, fmt.Sprintf("the start-up files of %s take %s", shell.Login(), took), "the first terminal of a daemon waits for them, 10s at most: make them faster"
	default:
		c.Reason = fmt.Sprintf("%s gives %d variables in %s", shell.Login(), len(env), took)
	}
	return []check{c}
}

// askLogin asks the person's login shell.
func askLogin(ctx context.Context) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return shell.Environment(ctx, shell.Login(), self)
}
