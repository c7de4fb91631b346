package agent

import (
	"errors"
	"os"
	"path/filepath"

	"tether/agent/local"
	"tether/platform/dirs"
	"tether/platform/secret"
)

// AddressPath is where a daemon that serves loopback TCP writes its address, since the
// port may be any that was free.
func AddressPath(d dirs.Dirs) string { return filepath.Join(d.Runtime, "local.addr") }

// Causes of faults of loopback TCP.
const (
	tokensCause = "tokens"
	tcpCause    = "loopback TCP"
)

// openTokens reads the tokens for TCP. If they cannot be read, TCP admits nobody, which
// status reports; the socket works without them.
func (a *Agent) openTokens() *local.Tokens {
	tokens, err := local.OpenTokens(a.cfg.Dirs.State)
	if err != nil {
		a.log.Error().Err(err).Msg("tokens")
		a.degraded.report(tokensCause, err.Error())
		return nil
	}
	tokens.Changed = a.auditToken
	return tokens
}

// serveTCP serves loopback TCP, if it is configured, until the server is closed.
// Obstacles, such as a used port, appear in status. The caller calls ended after it has
// closed the server.
func (a *Agent) serveTCP(server *local.Server, tokens *local.Tokens) (ended func()) {
	none := func() {}
	if a.settings.Local.Listen == "" || tokens == nil {
		return none
	}
	failed := func(err error) {
		a.log.Error().Err(err).Msg("loopback TCP")
		a.degraded.report(tcpCause, err.Error()+"; see [local] in config.toml")
	}
	if _, err := tokens.User(); err != nil { // made now, so that it is there with the address
		failed(err)
		return none
	}
	l, err := local.ListenLoopback(a.settings.Local.Listen)
	if err != nil {
		failed(err)
		return none
	}
	address := l.Addr().String()
	if err := secret.WriteFile(AddressPath(a.cfg.Dirs), []byte(address+"\n")); err != nil {
		failed(errors.Join(err, l.Close()))
		return none
	}
	a.tcp.Store(&address)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.ServeTCP(l); err != nil {
			failed(err)
		}
		a.tcp.Store(nil)
		_ = os.Remove(AddressPath(a.cfg.Dirs)) // stale otherwise, which harms nobody
	}()
	return func() { <-done }
}
