package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Lend selects the terminals that are lent to hosts, and the parts of them that leave the
// machine.
type Lend struct {
	// Default decides whether a terminal that no rule matches is lent if its starter does
	// not say: yes or no.
	Default string `toml:"default" oneof:"yes no"`
	// AsRoot applies Default and rules of yes in a daemon that runs as root. Otherwise
	// such a daemon lends only terminals that it is asked to lend by name.
	AsRoot bool `toml:"as_root"`
	// Notice tells a person who is attached to a lent terminal that it is lent.
	Notice bool `toml:"notice"`
	// HostGrants accepts grants that administrators of a host made for this machine.
	HostGrants bool `toml:"host_grants"`
	// Shares lets links for guests be made.
	Shares bool `toml:"shares"`
	// Park bounds how long hosts may keep terminals for their own doors while this
	// machine is away; 0s: not at all.
	Park Duration `toml:"park" range:"0s..720h"`
	// Checkout tells hosts the git repository, work tree, branch and commit of a
	// terminal's directory.
	Checkout bool `toml:"checkout"`
	// Clipboard lets programs in lent terminals set observers' clipboards.
	Clipboard bool `toml:"clipboard"`
	// FileLinks lets links to files through.
	FileLinks bool `toml:"file_links"`
	// Images is how many bytes of images one terminal may show in a minute.
	Images Size `toml:"images" range:"0B..1GiB"`
	// Redact masks text that looks like a credential.
	Redact bool `toml:"redact"`
	// RedactEnv names variables whose values are replaced; * stands for any text.
	RedactEnv []string `toml:"redact_env"`
	// RedactPatterns are regular expressions of further text to mask.
	RedactPatterns []string   `toml:"redact_patterns"`
	Rules          []LendRule `toml:"rules"`
}

// LendRule applies to the terminals that meet all of its conditions; every terminal meets
// a condition without values.
type LendRule struct {
	// Effect is yes: lent when nothing is said; no: only when asked; never.
	Effect string   `toml:"effect" oneof:"yes no never"`
	Doors  []string `toml:"doors" oneof:"cli mcp acp ws ahp config"`
	Owners []string `toml:"owners" oneof:"user agent"`
	// Directories are absolute or begin with "~/"; directories below them count.
	Directories []string `toml:"directories"`
	// Hosts are those to which the rule applies.
	Hosts []string `toml:"hosts"`
}

// The words of Lend.Default and LendRule.Effect.
const (
	LendYes   = "yes"
	LendNo    = "no"
	LendNever = "never"
)

func defaultLend() Lend {
	return Lend{
		Default: LendYes, Notice: true, Shares: true, Checkout: true, Images: 2 << 20, Redact: true,
		RedactEnv: []string{"*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*PRIVATE_KEY*", "*CREDENTIAL*",
			"*_PASS", "PASS", "SSHPASS", "PGPASS", "*DBPASS", "*USERPASS", "*ROOTPASS", "*ADMINPASS", "*_PW", "*BINDPW", "*_PWD", "*_KEY", "*WRITEKEY", "*_PAT", "*_AUTH", "*AUTH_CONFIG", "*_DSN", "DSN", "*_URL", "*_URI", "*_PROXY", "*BEARER*", "*WEBHOOK*", "*PASSPHRASE*", "*CONNECTION_STRING*",
			"*_COOKIE", "*_SALT", "*_PIN", "*_OTP", "*_JWT", "JWT", "*_PEM"},
		RedactPatterns: []string{},
	}
}

// Bounds of the patterns.
const (
	maxRedactPatterns = 50
	maxRedactPattern  = 500 // bytes
)

// problems returns the faults of the values.
func (l *Lend) problems() []Problem {
	var all []Problem
	problem := func(key, format string, args ...any) {
		all = append(all, Problem{Key: "lend." + key, Text: fmt.Sprintf(format, args...)})
	}
	if len(l.RedactPatterns) > maxRedactPatterns {
		problem("redact_patterns", "there may be at most %d", maxRedactPatterns)
	}
	for i, p := range l.RedactPatterns {
		re, err := regexp.Compile(p)
		switch {
		case err != nil:
			problem("redact_patterns", "number %d: %s", i+1, printable(err.Error()))
		case len(p) > maxRedactPattern:
			problem("redact_patterns", "number %d is longer than %d bytes", i+1, maxRedactPattern)
		case re.MatchString(""):
			problem("redact_patterns", "number %d fits the empty text: it would be everywhere", i+1)
		}
	}
	for _, glob := range l.RedactEnv {
		if strings.Trim(glob, "*") == "" || strings.ContainsAny(glob, "= ") {
			problem("redact_env", "%s must be a variable's name, where * stands for any text", shown(glob))
		}
	}
	for i := range l.Rules {
		at := "rules." + strconv.Itoa(i)
		if l.Rules[i].Effect == "" {
			problem(at+".effect", "each rule needs one: yes, no or never")
		}
		for _, d := range l.Rules[i].Directories {
			if !strings.HasPrefix(d, "~/") && d != "~" && !filepath.IsAbs(d) {
				problem(at+".directories", `%s must be an absolute path or begin with "~/"`, shown(d))
			}
		}
	}
	return all
}

// Lending is the input of a rule.
type Lending struct {
	Door, Owner string
	Host        string
	Dirs        []string // directories of the terminal: absolute, under all their names
	Root        bool     // the daemon runs as root
}

// Effect returns the effect of the first rule that fits. A never takes priority over all
// rules before it; as root, a yes counts only with AsRoot.
func (l *Lend) Effect(q Lending, home string) string {
	effect := l.effect(q, home)
	if effect == LendYes && q.Root && !l.AsRoot {
		return LendNo
	}
	return effect
}

func (l *Lend) effect(q Lending, home string) string {
	found := ""
	for i := range l.Rules {
		r := &l.Rules[i]
		switch {
		case !r.fits(q, home):
		case r.Effect == LendNever:
			return LendNever
		case found == "":
			found = r.Effect
		}
	}
	if found == "" {
		return l.Default
	}
	return found
}

// Never reports whether a rule forbids lending to the host from one of the directories,
// whatever the rule's other conditions.
func (l *Lend) Never(host string, dirs []string, home string) bool {
	return slices.ContainsFunc(l.Rules, func(r LendRule) bool {
		return r.Effect == LendNever && (len(r.Hosts) == 0 || slices.Contains(r.Hosts, host)) &&
			slices.ContainsFunc(r.Directories, func(d string) bool { return r.about(d, dirs, home) })
	})
}

func (r *LendRule) fits(q Lending, home string) bool {
	one := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	return one(r.Doors, q.Door) && one(r.Owners, q.Owner) && one(r.Hosts, q.Host) &&
		(len(r.Directories) == 0 || slices.ContainsFunc(r.Directories, func(d string) bool { return r.about(d, q.Dirs, home) }))
}

// about reports whether one of the directories is top or in it. If top is below a home
// directory that is not known, any directory might be in it: then a rule with never fits,
// and no other does.
func (r *LendRule) about(top string, dirs []string, home string) bool {
	if home == "" && strings.HasPrefix(top, "~") {
		return r.Effect == LendNever
	}
	return below(dirs, top, home)
}

// below reports whether one of the directories is top or in it: by its name or, if top
// exists, by identity, so that neither a link nor, on a disk that ignores case, another
// spelling leads around a rule.
func below(dirs []string, top, home string) bool {
	if rest, ok := strings.CutPrefix(top, "~"); ok && home != "" {
		top = home + rest
	}
	real, err := os.Stat(top)
	for _, d := range dirs {
		rel, bad := filepath.Rel(top, d)
		if bad == nil && (rel == "." || filepath.IsLocal(rel)) || err == nil && inside(d, real) {
			return true
		}
	}
	return false
}

// inside reports whether dir is top or in it.
func inside(dir string, top os.FileInfo) bool {
	for {
		if here, err := os.Stat(dir); err == nil && os.SameFile(here, top) {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}
