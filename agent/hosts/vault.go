package hosts

// Seal keeps a secret of another part of the daemon where tokens are kept. sealed says
// that this is the keyring; otherwise the caller keeps it, in a file that only the user
// can read. name is unique among such secrets.
func (p *Paired) Seal(name, text string) (sealed bool, err error) {
	s := p.store
	if err := s.settle(""); err != nil {
		return false, err
	}
	s.mu.Lock()
	store := s.kept.Store
	s.mu.Unlock()
	if store != inKeyring {
		return false, nil
	}
	if err := s.setSecret(name, text); err != nil {
		return false, err
	}
	return true, s.update(func(all []host) []host { return all }) // where it is, for the next daemon
}

// Unseal returns a secret that Seal has put into the keyring.
func (p *Paired) Unseal(name string) (string, error) { return p.store.secret(name) }

// Forget removes a secret that Seal has put into the keyring.
func (p *Paired) Forget(name string) error { return p.store.dropSecret(name) }
