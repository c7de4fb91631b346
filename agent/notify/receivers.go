package notify

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/deliver"
	"tether/platform/secret"
)

// maxReceivers bounds the URLs that are kept.
const maxReceivers = 50

// Vault keeps secrets where the daemon keeps tokens, see hosts.Paired.
type Vault interface {
	Seal(name, text string) (sealed bool, err error)
	Unseal(name string) (string, error)
	Forget(name string) error
}

// receiver is a URL with a name, as it is kept.
type receiver struct {
	Name   string `json:"name"`
	Form   Form   `json:"form"`
	URL    string `json:"url,omitempty"` // unless Sealed
	Sealed bool   `json:"in_keyring,omitempty"`
}

// item names the URL in the vault.
func (r *receiver) item() string { return "notify/" + r.Name }

// receiverFile is the content of the file. URLs are as secret as tokens: whoever knows
// one can write to the person.
type receiverFile struct {
	Version   int        `json:"version"`
	Receivers []receiver `json:"receivers"`
}

const receiverVersion = 1

// Receivers are the URLs that the person has given names. It is safe for concurrent use.
type Receivers struct {
	path  string
	vault Vault
	wrong error // why the file cannot be used; nothing is changed then

	mu  sync.Mutex // also held while the file is written
	all []receiver // by name
}

// OpenReceivers reads the file, which need not be there. With an error, the receivers are
// none, and cannot be changed.
func OpenReceivers(path string, vault Vault) (*Receivers, error) {
	var f receiverFile
	err := secret.ReadJSON(path, receiverVersion, &f)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the URLs of notifications: %w", err)
		return &Receivers{wrong: err}, err
	}
	return &Receivers{path: path, vault: vault, all: f.Receivers}, nil
}

func (s *Receivers) find(name string) (receiver, int) {
	i := slices.IndexFunc(s.all, func(r receiver) bool { return r.Name == name })
	if i < 0 {
		return receiver{}, -1
	}
	return s.all[i], i
}

// has reports whether there is a receiver of that name.
func (s *Receivers) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.find(name)
	return i >= 0
}

// get returns the receiver of that name with its URL.
func (s *Receivers) get(name string) (receiver, error) {
	s.mu.Lock()
	r, i := s.find(name)
	s.mu.Unlock()
	if i < 0 {
		return r, errUnknown(name)
	}
	var err error
	if r.Sealed {
		r.URL, err = s.vault.Unseal(r.item())
	}
	return r, err
}

func errUnknown(name string) error {
	return &localapi.Error{Code: localapi.CodeNotFound, Message: fmt.Sprintf("no URL has the name %.80q", name), Hint: "tether notify ls lists them; tether notify add NAME adds one"}
}

// list returns the receivers.
func (s *Receivers) list() []receiver {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// put adds a URL under a name, or replaces the one of that name. Errors do not contain
// the URL.
func (s *Receivers) put(name, text string, form Form) error {
	if err := config.CheckName(name); err != nil || name == config.NotifyDesktop {
		return localapi.BadRequest("the name %.80q %v", name, cmp.Or(err, errors.New("stands for the desktop")))
	}
	if s.wrong != nil {
		return s.wrong
	}
	text, err := deliver.Guard{Any: true}.Check(strings.TrimSpace(text))
	if err != nil {
		return localapi.BadRequest("%v", err)
	}
	form = cmp.Or(form, guess(text))
	if !slices.Contains(forms, form) {
		return localapi.BadRequest("the form %.20q must be one of %s", form, formNames())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, i := s.find(name)
	if i < 0 && len(s.all) >= maxReceivers {
		return &localapi.Error{Code: localapi.CodeLimit, Message: fmt.Sprintf("there are %d URLs, the maximum", maxReceivers), Hint: "tether notify remove NAME removes one"}
	}
	r := receiver{Name: name, Form: form, URL: text}
	if r.Sealed, err = s.vault.Seal(r.item(), text); err != nil {
		return err
	}
	if r.Sealed {
		r.URL = ""
	}
	next := append(slices.DeleteFunc(slices.Clone(s.all), func(o receiver) bool { return o.Name == name }), r)
	slices.SortFunc(next, func(a, b receiver) int { return strings.Compare(a.Name, b.Name) })
	if err := s.write(next); err != nil {
		return err
	}
	if old.Sealed && !r.Sealed {
		_ = s.vault.Forget(old.item()) // the URL that stays is not used
	}
	return nil
}

// remove forgets the URL of that name.
func (s *Receivers) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, i := s.find(name)
	if i < 0 {
		return errUnknown(name)
	}
	if err := s.write(slices.Delete(slices.Clone(s.all), i, i+1)); err != nil {
		return err
	}
	if old.Sealed {
		return s.vault.Forget(old.item())
	}
	return nil
}

func (s *Receivers) write(next []receiver) error {
	if err := secret.WriteJSON(s.path, receiverFile{receiverVersion, next}); err != nil {
		return fmt.Errorf("keep the URL: %w", err)
	}
	s.all = next
	return nil
}

// guess returns the form that the service at a URL takes.
func guess(text string) Form {
	u, err := url.Parse(text)
	if err != nil {
		return JSON
	}
	switch name := u.Hostname(); {
	case name == "ntfy.sh" || strings.HasPrefix(name, "ntfy."):
		return Ntfy
	case name == "hooks.slack.com":
		return Slack
	case name == "discord.com" || name == "discordapp.com" || strings.HasSuffix(name, ".discord.com"):
		return Discord
	}
	return JSON
}
