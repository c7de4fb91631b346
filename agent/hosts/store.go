package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"tether/agent/device"
	"tether/agent/term"
	"tether/ahp/client"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/secret"
)

// host is one paired host as the store keeps it.
type host struct {
	Name                  string         `json:"name"`
	URL                   string         `json:"url"`
	Also                  []string       `json:"also,omitempty"` // further addresses of the same host
	Token                 string         `json:"token,omitempty"`
	Pin                   string         `json:"pin,omitempty"`        // client.Pin
	Sealed                bool           `json:"in_keyring,omitempty"` // the token is
	HostKey               []byte         `json:"host_key,omitempty"`   // of a host that this machine is paired with by keys
	ClientID              string         `json:"client_id"`
	Default               bool           `json:"default,omitempty"`
	AssumeClientTerminals bool           `json:"assume_client_terminals,omitempty"`
	OnDispose             term.OnDispose `json:"on_dispose,omitempty"`
	ClientTools           bool           `json:"client_tools,omitempty"` // sessions there are offered this machine's tools
}

// file is the store's file.
type file struct {
	Version int     `json:"version"`
	Secrets keeping `json:"secrets,omitzero"`
	Hosts   []host  `json:"hosts"`
}

const fileVersion = 1

// endpoint says how to reach a host, with the credential that is kept for it.
func (s *store) endpoint(h host) client.Endpoint {
	pin, _ := client.ParsePin(h.Pin) // openStore has checked it
	e := client.Endpoint{URL: h.URL, Also: h.Also, Token: h.Token, Pin: pin}
	if len(h.Also) > 0 {
		e.Last = new(atomic.Pointer[string])
	}
	switch {
	case h.HostKey != nil:
		e.Credential = func(ctx context.Context, url string) (string, error) { return s.session(ctx, h, url, pin) }
	case h.Sealed:
		e.Credential = func(context.Context, string) (string, error) { return s.secret(h.ClientID) }
	}
	return e
}

// session proves to the host, at one of its addresses, that this is the machine it was
// paired with.
func (s *store) session(ctx context.Context, h host, url string, pin client.Pin) (token string, err error) {
	key, err := s.deviceKey(false)
	if err != nil {
		return "", err
	}
	c, err := device.New(client.Endpoint{URL: url, Pin: pin}, key)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Session(ctx, h.HostKey)
}

// store is the list of paired hosts. It is safe for concurrent use.
type store struct {
	path    string
	secrets Secrets
	writing sync.Mutex // held by update: two changes must not overtake each other

	mu    sync.Mutex
	all   []host // in the order of pairing; replaced, never changed
	kept  keeping
	known map[string]string // the keyring's answers
}

func openStore(path string, secrets Secrets) (*store, error) {
	var f file
	err := secret.ReadJSON(path, fileVersion, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return &store{path: path, secrets: secrets}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("paired hosts: %w", err)
	}
	for _, h := range f.Hosts {
		_, err := client.ParsePin(h.Pin)
		if err == nil {
			for _, url := range append([]string{h.URL}, h.Also...) {
				_, wrong := hostURL(url) // the file may have been edited, and clear text must never leave the machine
				err = cmp.Or(err, wrong)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("paired hosts: %s: %s: %w", path, h.Name, err)
		}
	}
	if f.Secrets.Store == "" && len(f.Hosts) > 0 {
		f.Secrets = keeping{Store: inFile, Why: "hosts were paired before there was a choice"}
	}
	return &store{path: path, secrets: secrets, all: f.Hosts, kept: f.Secrets}, nil
}

// Endpoint returns the endpoint of the paired host with the name or URL where. found is
// false if there is none. It needs no daemon.
func Endpoint(d dirs.Dirs, where string) (e client.Endpoint, found bool, err error) {
	s, h, found, err := paired(d, where)
	if !found || err != nil {
		return e, false, err
	}
	return s.endpoint(h), true, nil
}

// ByKey reports whether the host with the name or URL where is paired by this machine's
// key, which sees there only the terminals that the daemon's own connection lends.
func ByKey(d dirs.Dirs, where string) bool {
	_, h, found, err := paired(d, where)
	return err == nil && found && h.HostKey != nil
}

// Names returns the names of the paired hosts, in the order of pairing. It needs no
// daemon, and asks no keyring.
func Names(d dirs.Dirs) ([]string, error) {
	s, err := openStore(path(d), Secrets{})
	if _, ok := errors.AsType[*secret.DamagedError](err); ok {
		return nil, nil // the daemon puts it aside, and says so
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, h := range s.all {
		names = append(names, h.Name)
	}
	return names, nil
}

// paired looks for the host in the file.
func paired(d dirs.Dirs, where string) (s *store, h host, found bool, err error) {
	s, err = openStore(path(d), Secrets{Keyring: keyring.System()})
	if err != nil {
		return nil, h, false, err
	}
	address, _ := URL(where) // a name gives "", which is no host's
	for _, h := range s.all {
		if h.Name == where || h.has(address) {
			return s, h, true, nil
		}
	}
	return nil, h, false, nil
}

// has reports whether a URL is one of the host's.
func (h host) has(url string) bool { return h.URL == url || slices.Contains(h.Also, url) }

func path(d dirs.Dirs) string { return filepath.Join(d.State, "hosts.json") }

// list returns the hosts in the order of pairing; it is not to be changed.
func (s *store) list() []host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// find returns the host of that name.
func (s *store) find(name string) (host, bool) {
	all := s.list()
	i := slices.IndexFunc(all, func(h host) bool { return h.Name == name })
	if i < 0 {
		return host{}, false
	}
	return all[i], true
}

// byDefault returns the host to which terminals are lent if a request names none: the one
// marked as default, or the only one.
func (s *store) byDefault() (host, bool) {
	all := s.list()
	if len(all) == 1 {
		return all[0], true
	}
	i := slices.IndexFunc(all, func(h host) bool { return h.Default })
	if i < 0 {
		return host{}, false
	}
	return all[i], true
}

// put adds a host or replaces the one of that name. If it is the default, all others
// cease to be.
func (s *store) put(h host) error { return s.replace(h.Name, h) }

// replace is put for a host that was called name before.
func (s *store) replace(name string, h host) error {
	h, err := s.sealed(h)
	if err != nil {
		return err
	}
	old, _ := s.find(name)
	err = s.update(func(all []host) []host {
		if h.Default {
			for i := range all {
				all[i].Default = false
			}
		}
		if i := slices.IndexFunc(all, func(o host) bool { return o.Name == name }); i >= 0 {
			all[i] = h
			return all
		}
		return append(all, h)
	})
	if err == nil && old.Sealed && (!h.Sealed || old.ClientID != h.ClientID) {
		_ = s.dropSecret(old.ClientID) // a token that stays is valid at the host in any case
	}
	return err
}

// remove forgets the host of that name.
func (s *store) remove(name string) error {
	old, _ := s.find(name)
	err := s.update(func(all []host) []host {
		return slices.DeleteFunc(all, func(h host) bool { return h.Name == name })
	})
	if err == nil && old.Sealed {
		_ = s.dropSecret(old.ClientID) // a token that stays is valid at the host in any case
	}
	return err
}

// update applies change to a copy of the list, writes the result, and replaces the list.
func (s *store) update(change func([]host) []host) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	all := change(slices.Clone(s.list()))
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	if err := secret.WriteJSON(s.path, file{Version: fileVersion, Secrets: kept, Hosts: all}); err != nil {
		return fmt.Errorf("keep paired hosts: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
	return nil
}

// An unreadable list of paired hosts must not block local terminals: the daemon starts,
// lends to nobody, and keeps the file aside unchanged. It may hold tokens that the person
// wants back.

// hostsCause is the cause in status while there is such a file.
const hostsCause = "paired hosts"

// mostAside is how many of them are kept; no more are put aside.
const mostAside = 9

// open reads the paired hosts. A damaged list is put aside. A list that others may read
// or that is a link is an error, and so is a list of another release, which is not
// damaged.
func (p *Paired) open() (err error) {
	at := path(p.opts.Dirs)
	p.store, err = openStore(at, p.opts.Secrets)
	if damaged, ok := errors.AsType[*secret.DamagedError](err); ok {
		aside, failed := putAside(at)
		if failed != nil {
			return fmt.Errorf("%w; it cannot be put aside: %w", err, failed)
		}
		p.opts.Logger.Error().Err(damaged.Err).Str("kept", aside).Msg("the list of paired hosts is damaged")
		p.store, err = openStore(at, p.opts.Secrets)
	}
	p.reportAside()
	return err
}

// putAside renames a file to a free name, and returns that name.
func putAside(at string) (string, error) {
	for n := 1; n <= mostAside; n++ {
		aside := asideName(at, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(at, aside)
		}
	}
	return "", fmt.Errorf("%s to %s are there already: repair or remove them", asideName(at, 1), asideName(at, mostAside))
}

func asideName(at string, n int) string { return fmt.Sprintf("%s.damaged-%d", at, n) }

// reportAside shows in status the file that was put aside, until the person removes it.
func (p *Paired) reportAside() {
	at := path(p.opts.Dirs)
	var kept []string
	for n := 1; n <= mostAside; n++ {
		if _, err := os.Lstat(asideName(at, n)); err == nil {
			kept = append(kept, asideName(at, n))
		}
	}
	text := ""
	if len(kept) > 0 {
		text = fmt.Sprintf("the list was damaged and is kept as %s; nothing is lent to the hosts in it. Pair with them again, or stop the daemon, repair the file and name it %s; then remove it",
			strings.Join(kept, ", "), at)
	}
	p.opts.Report(hostsCause, text)
}
