package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tether/agent/localapi"
	"tether/platform/keyring"
)

// Secrets says where the daemon may keep tokens and this machine's key.
type Secrets struct {
	// Keyring is the desktop's; nil means that there is none.
	Keyring *keyring.Keyring
	// File, if not "", is why the file is taken unless the person asks for the keyring.
	File string
}

// Places where secrets are kept, as the person names them.
const (
	inFile    = localapi.StoreFile
	inKeyring = localapi.StoreKeyring
)

// keeping says where secrets are kept. It is settled once and stays: if the keyring is
// locked one day, tokens are not asked for again, and if it comes back, they are not
// spread over two places.
type keeping struct {
	Store     string `json:"store,omitempty"`      // inFile or inKeyring; "" is not settled
	Why       string `json:"why,omitempty"`        // why Store is not the keyring
	ID        string `json:"id,omitempty"`         // begins the names of our items in the keyring
	DeviceKey []byte `json:"device_key,omitempty"` // the seed of this machine's key, unless that is in the keyring
}

// deviceItem names the machine's key in the keyring.
const deviceItem = "device"

// settle decides where secrets are kept: where the person wants them, or with "" in the
// best available place. It waits for the keyring for at most a second.
func (s *store) settle(want string) error {
	if want != "" && want != inFile && want != inKeyring {
		return localapi.BadRequest("secrets are kept in the %s or in a %s, not in %.20q", inKeyring, inFile, want)
	}
	s.mu.Lock()
	kept, hosts := s.kept, len(s.all)
	s.mu.Unlock()
	if kept.Store != "" && (want == "" || want == kept.Store || hosts > 0) {
		if want != "" && want != kept.Store {
			return &localapi.Error{Code: localapi.CodeExists, Message: "secrets are kept in the " + kept.Store + " since the first host was paired",
				Hint: "unpair all hosts, then pair with --store " + want}
		}
		return nil
	}
	kept, err := s.choose(want)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = kept
	return nil
}

// bare returns the text of an error of the keyring without the package's prefix.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "keyring: ") }

func (s *store) choose(want string) (keeping, error) {
	if want == inFile {
		return keeping{Store: inFile, Why: "--store file was given"}, nil
	}
	if want == "" && s.secrets.File != "" {
		return keeping{Store: inFile, Why: s.secrets.File}, nil
	}
	err := errors.New("not supported on this system")
	if s.secrets.Keyring != nil {
		err = s.secrets.Keyring.Probe()
	}
	switch {
	case err == nil:
		return keeping{Store: inKeyring, ID: rand.Text()}, nil
	case want == inKeyring:
		return keeping{}, &localapi.Error{Code: localapi.CodeCannotStart, Message: "the desktop keyring is not available: " + bare(err),
			Hint: "unlock it, or keep secrets in a file that only you can read: --store file"}
	}
	return keeping{Store: inFile, Why: "no desktop keyring (" + bare(err) + ")"}, nil
}

// place says where secrets are kept, for the person.
func (s *store) place() *localapi.SecretStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.Store == "" {
		return nil
	}
	p := &localapi.SecretStore{Store: s.kept.Store, Why: s.kept.Why}
	if s.kept.Store == inFile {
		p.Path = s.path
	}
	return p
}

// secret returns the item of that name in the keyring. It asks the keyring only once and
// remembers the answer.
func (s *store) secret(name string) (string, error) {
	s.mu.Lock()
	text, ok := s.known[name]
	id := s.kept.ID
	s.mu.Unlock()
	if ok {
		return text, nil
	}
	if s.secrets.Keyring == nil {
		return "", errors.New("the secret is in a keyring, and there is no keyring here")
	}
	text, err := s.secrets.Keyring.Get(id + "/" + name)
	if err != nil {
		return "", err
	}
	s.remember(name, text)
	return text, nil
}

func (s *store) remember(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[name] = text
}

// setSecret puts an item into the keyring.
func (s *store) setSecret(name, text string) error {
	s.mu.Lock()
	id := s.kept.ID
	s.mu.Unlock()
	if s.secrets.Keyring == nil {
		return errors.New("secrets are in a keyring, and there is no keyring here")
	}
	if err := s.secrets.Keyring.Set(id+"/"+name, text); err != nil {
		return fmt.Errorf("keep a secret: %w", err)
	}
	s.remember(name, text)
	return nil
}

// dropSecret forgets an item.
func (s *store) dropSecret(name string) error {
	s.mu.Lock()
	delete(s.known, name)
	id := s.kept.ID
	s.mu.Unlock()
	if s.secrets.Keyring == nil {
		return nil
	}
	if err := s.secrets.Keyring.Delete(id + "/" + name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return fmt.Errorf("forget a secret: %w", err)
	}
	return nil
}

// sealed moves the host's token into the keyring, if secrets are kept there.
func (s *store) sealed(h host) (host, error) {
	s.mu.Lock()
	store := s.kept.Store
	s.mu.Unlock()
	if store != inKeyring || h.Token == "" {
		return h, nil
	}
	if err := s.setSecret(h.ClientID, h.Token); err != nil {
		return h, err
	}
	h.Token, h.Sealed = "", true
	return h, nil
}

// errNoDeviceKey says that something other than the daemon has removed this machine's
// key.
var errNoDeviceKey = errors.New("this machine's key is missing; pair again")

// deviceKey returns this machine's key. If there is none yet, it makes the key if make is
// set.
func (s *store) deviceKey(make bool) (ed25519.PrivateKey, error) {
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	seed := kept.DeviceKey
	if kept.Store == inKeyring {
		text, err := s.secret(deviceItem)
		if err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return nil, err
		}
		if seed, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, errNoDeviceKey
		}
	}
	switch {
	case len(seed) == ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(seed), nil
	case !make:
		return nil, errNoDeviceKey
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	if kept.Store == inKeyring {
		return key, s.setSecret(deviceItem, base64.StdEncoding.EncodeToString(key.Seed()))
	}
	s.mu.Lock()
	s.kept.DeviceKey = slices.Clone(key.Seed())
	s.mu.Unlock()
	return key, s.update(func(all []host) []host { return all })
}

// dropDeviceKey forgets this machine's key if no host is paired by it: a host that could
// not be told would still let it in.
func (s *store) dropDeviceKey() error {
	if slices.ContainsFunc(s.list(), func(h host) bool { return h.HostKey != nil }) {
		return nil
	}
	s.mu.Lock()
	written, sealed := s.kept.DeviceKey != nil, s.kept.Store == inKeyring
	s.kept.DeviceKey = nil
	s.mu.Unlock()
	var err error
	if sealed {
		err = s.dropSecret(deviceItem)
	}
	if written {
		err = errors.Join(err, s.update(func(all []host) []host { return all }))
	}
	return err
}
