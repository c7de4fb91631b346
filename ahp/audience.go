package ahp

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tether/internal/lazyregexp"
)

// Methods of the extension for the audience of a lent terminal. Only the host and the
// terminal's owner exchange them.
const (
	// MethodAudience is the owner's request that replaces a terminal's audience; params
	// are AudienceParams. The owner sends it after all earlier output. A host that does
	// not accept every name answers -32602, with RefusedNames as data, and changes
	// nothing.
	MethodAudience = "x-tether/audience"
	// MethodWatchers is the host's notification of who may watch a terminal and who
	// watches it now; params are WatchersParams.
	MethodWatchers = "x-tether/watchers"
	// MethodShare is the owner's request to let guests with a link watch one terminal;
	// params are ShareParams. MethodUnshare ends that; params are UnshareParams.
	MethodShare   = "x-tether/share"
	MethodUnshare = "x-tether/unshare"
)

// AudienceKey is in createTerminal, and only there: an [Audience]. The host shows it to
// nobody but the owner.
const AudienceKey = "tether/audience"

// Bounds of an audience, a list of watchers and a share.
const (
	MaxGrants      = 64 // entries of Audience.Grants, and of Audience.Denied
	MaxWatchers    = 32 // entries of each list in WatchersParams; More counts the rest of Watching
	MaxShareTime   = 30 * 24 * time.Hour
	maxAudience    = 64 // bytes of a name, without its prefix
	maxWatcherName = 256
)

// Parts of Grant.To that have a meaning.
const (
	ToEveryone  = "everyone" // anyone with a token or a login, never guests
	GroupPrefix = "group:"
	AgentPrefix = "agent:"
)

// Audiences is a part of the host's marker. It says that the host shows each lent
// terminal only to its audience.
type Audiences struct {
	Version int64  `json:"version"`
	Owner   string `json:"owner,omitempty"` // the person to whom this machine belongs; "": the administrators
}

// AudiencesVersion is the version of Audiences that this package speaks.
const AudiencesVersion = 1

// Audience lists who may watch one of a machine's terminals, besides the person to whom
// the machine belongs and that person's agents.
type Audience struct {
	Grants []Grant `json:"grants,omitempty"`
	// Denied are people and agents who may not watch, even if a grant by name, a grant by
	// group or a grant of the host lets them.
	Denied []string `json:"denied,omitempty"`
	// HostGrants applies the grants that administrators of the host made for the whole
	// machine to this terminal.
	HostGrants bool `json:"hostGrants,omitempty"`
	// GuestsOnly says that only guests with a link may watch. Not even the machine's
	// owner at the host may.
	GuestsOnly bool `json:"guestsOnly,omitempty"`
}

// Grant lets somebody watch a terminal. To is a person's name, GroupPrefix or AgentPrefix
// with a name, or ToEveryone.
type Grant struct {
	To   string `json:"to"`
	From int64  `json:"from,omitempty"` // text offset in bytes: earlier output is not shown; 0: all retained output
}

// audienceName matches a name in Grant.To, without its prefix.
var audienceName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@-]*$`)

// CheckAudienceName returns an error if to is not valid as Grant.To or, if denied, not
// valid in Audience.Denied.
func CheckAudienceName(to string, denied bool) error {
	name := to
	if rest, ok := strings.CutPrefix(to, AgentPrefix); ok {
		name = rest
	} else if rest, ok := strings.CutPrefix(to, GroupPrefix); ok && !denied {
		name = rest
	} else if to == ToEveryone && denied {
		return fmt.Errorf("%q cannot be denied", to)
	}
	switch {
	case len(name) > maxAudience:
		return fmt.Errorf("a name of %d bytes is too long: at most %d", len(name), maxAudience)
	case !audienceName().MatchString(name):
		return fmt.Errorf("%.80q is not a name: NAME, %sNAME, %sNAME or %s, of letters, digits and . _ - @", to, GroupPrefix, AgentPrefix, ToEveryone)
	}
	return nil
}

// Validate checks the audience.
func (a Audience) Validate() error {
	if len(a.Grants) > MaxGrants || len(a.Denied) > MaxGrants {
		return fmt.Errorf("an audience has more than %d names", MaxGrants)
	}
	for _, g := range a.Grants {
		if g.From < 0 {
			return fmt.Errorf("from is %d, want 0 or more", g.From)
		}
		if err := CheckAudienceName(g.To, false); err != nil {
			return err
		}
	}
	for _, name := range a.Denied {
		if err := CheckAudienceName(name, true); err != nil {
			return err
		}
	}
	return nil
}

// AddAudience adds an audience to the _meta of a CreateTerminalParams.
func AddAudience(m Meta, a Audience) Meta { return m.with(AudienceKey, a) }

// FindAudience returns the audience that AddAudience added; ok is false if there is none.
func FindAudience(m Meta) (a Audience, ok bool, err error) {
	raw, ok := m[AudienceKey]
	if !ok {
		return Audience{}, false, nil
	}
	if err := DecodeParams(raw, &a); err != nil {
		return Audience{}, true, fmt.Errorf("%s: %w", AudienceKey, err)
	}
	return a, true, nil
}

// AudienceParams is the params of MethodAudience. Without a channel the names are checked
// and nothing is changed.
type AudienceParams struct {
	Channel string `json:"channel,omitempty"`
	Audience
}

// Validate checks the params.
func (p AudienceParams) Validate() error {
	if p.Channel != "" {
		if err := CheckURI(p.Channel); err != nil {
			return err
		}
	}
	return p.Audience.Validate()
}

// RefusedNames is the data of the error that answers MethodAudience.
type RefusedNames struct {
	Names []string `json:"names"`
}

// FindRefusedNames returns the names in the data of an error that answers MethodAudience,
// at most MaxGrants. The data comes from outside and may be invalid.
func FindRefusedNames(data json.RawMessage) []string {
	var r RefusedNames
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	return r.Names[:min(len(r.Names), MaxGrants)]
}

// Kinds of a Watcher.
const (
	WatcherPerson  = "person"
	WatcherAgent   = "agent"
	WatcherGuest   = "guest"
	WatcherMachine = "machine" // another client of the machine that lends
)

// Watcher is a person or program that watches a terminal.
type Watcher struct {
	Who   string    `json:"who"`
	Kind  string    `json:"kind"` // one of the constants
	Since time.Time `json:"since"`
}

// WatchersParams is the params of MethodWatchers.
type WatchersParams struct {
	Channel  string    `json:"channel"`
	May      []string  `json:"may"`               // names in the form of Grant.To, as the host resolves them, the owner first; at most MaxWatchers
	Refused  []string  `json:"refused,omitempty"` // names in the terminal's audience that grant nothing here; at most MaxGrants
	Watching []Watcher `json:"watching"`
	More     int64     `json:"more,omitempty"` // number of watchers that are not in Watching
}

// Validate checks the params. Names may hold any text.
func (p WatchersParams) Validate() error {
	switch {
	case len(p.May) > MaxWatchers || len(p.Watching) > MaxWatchers || len(p.Refused) > MaxGrants:
		return fmt.Errorf("a list has more than %d entries", MaxWatchers)
	case p.More < 0 || p.More > maxObservers:
		return fmt.Errorf("more is %d, want 0 to %d", p.More, maxObservers)
	}
	for _, w := range p.Watching {
		if err := cmp.Or(checkLength("who", w.Who, maxWatcherName), checkLength("kind", w.Kind, maxAudience)); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(p.May, p.Refused) {
		if err := checkLength("may", name, maxWatcherName); err != nil {
			return err
		}
	}
	return CheckURI(p.Channel)
}

// ShareParams is the params of MethodShare. The host never sees the link's secret before
// a guest shows it.
type ShareParams struct {
	Channel    string    `json:"channel"`
	ID         string    `json:"id"`         // of the share, see CheckShareID
	SecretHash string    `json:"secretHash"` // SHA-256 of the link's secret, as 64 hexadecimal digits
	ExpiresAt  time.Time `json:"expiresAt"`
	Once       bool      `json:"once,omitempty"` // only the first browser that opens it is let in
	// Port is the lent port that guests see in their browsers, and nothing else; 0 means
	// that they watch the terminal. A host without ports does not know it, and must not
	// get it.
	Port int64 `json:"port,omitempty"`
}

var shareID = lazyregexp.New(`^[a-z2-7]{8,32}$`)

// CheckShareID checks the id of a share.
func CheckShareID(id string) error {
	if !shareID().MatchString(id) {
		return fmt.Errorf("%.40q is not the id of a share", id)
	}
	return nil
}

// Validate checks the params by themselves.
func (p ShareParams) Validate() error {
	if hash, err := hex.DecodeString(p.SecretHash); err != nil || len(hash) != 32 {
		return fmt.Errorf("secretHash is not a SHA-256 hash in hexadecimal digits")
	}
	if p.ExpiresAt.IsZero() {
		return fmt.Errorf("expiresAt is missing")
	}
	if p.Port < 0 || p.Port > math.MaxUint16 {
		return fmt.Errorf("port is %d", p.Port)
	}
	return cmp.Or(CheckURI(p.Channel), CheckShareID(p.ID))
}

// UnshareParams is the params of MethodUnshare.
type UnshareParams struct {
	Channel string `json:"channel"`
	ID      string `json:"id"`
}

// Validate checks the params.
func (p UnshareParams) Validate() error { return cmp.Or(CheckURI(p.Channel), CheckShareID(p.ID)) }

// ShareResult is the result of MethodShare.
type ShareResult struct {
	// URL is the address of the host's page for guests, "" if the host does not know its
	// own address.
	URL string `json:"url,omitempty"`
}

// KeepsAudiences reports whether the marker has audiences in the version that this
// package speaks.
func (t ClientTerminals) KeepsAudiences() bool {
	return t.Audiences != nil && t.Audiences.Version == AudiencesVersion
}
