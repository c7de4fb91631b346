package shellint

import (
	"errors"
	"fmt"
	"strings"
)

// Shell is a kind of shell that Inject knows.
type Shell string

// The shells that can write marks. Others (sh, dash, ksh, elvish, xonsh …) are started as
// they are.
const (
	ShellNone       Shell = ""
	ShellBash       Shell = "bash" // 3.2 and newer
	ShellZsh        Shell = "zsh"  // 5.1 and newer
	ShellFish       Shell = "fish" // 3.4 and newer
	ShellPowerShell Shell = "pwsh" // PowerShell 7 and Windows PowerShell 5.1
	ShellNu         Shell = "nu"
	ShellCmd        Shell = "cmd" // cmd.exe: prompts and directories only
)

// InjectOptions says for which terminal Inject plans.
type InjectOptions struct {
	// Nonce is the terminal's secret, the Options.Nonce of its Scanner: letters, digits,
	// "-" and "_" only, at least 8 of them (unguessable: 128 random bits or more). It
	// appears in Injection.Files and nowhere else.
	Nonce string
	// Dir is an absolute path: a folder of mode 0700 that the caller made for this
	// terminal alone. Inject does not touch it. The caller writes Injection.Files there
	// before the start, and removes the folder with all its contents when the terminal
	// ends. Each script removes its own file as soon as the shell has read it.
	Dir string
	// Getenv looks into the environment that the child will get; "" means unset. nil is
	// an empty environment.
	Getenv func(string) string
	// Login makes the shell a login shell even if argv does not say so.
	Login bool
	// DebugTrap has bash of any version use the DEBUG trap, as it does before 4.4. It is
	// for tests.
	DebugTrap bool
}

// File is a file to be written into InjectOptions.Dir.
type File struct {
	Name    string // without a slash
	Mode    uint32 // permission bits: 0600
	Content []byte
}

// Injection says how to start the shell. It shares no memory with the arguments of
// Inject.
type Injection struct {
	Kind  Shell
	Argv  []string
	Env   map[string]string // variables to set in the child's environment
	Unset []string          // variables to take out of it
	Files []File
	// Detect says that the shell will report its commands, unless its start-up files
	// prevent it (exec of another shell).
	Detect bool
}

// Nonce bounds, in bytes. The upper bound is not a protocol's rule; it keeps marks short.
const (
	minNonce = 8
	maxNonce = 128
)

// Inject plans the start of an interactive shell so that it reports prompts, command
// lines and exit codes in OSC 633 marks that carry o.Nonce. It is a pure function, and
// the plan changes none of the user's files. An argv that Inject does not recognise as an
// interactive start (bash -c …, zsh -f, a script, another program) is returned unchanged,
// with Detect false; then o.Login has no effect either. The error names the unusable
// option.
func Inject(argv []string, o InjectOptions) (Injection, error) {
	plan := Injection{Argv: append([]string(nil), argv...)}
	if len(argv) == 0 {
		return plan, nil
	}
	plan.Kind = shellOf(argv[0])
	s, ok := injectors[plan.Kind]
	if !ok {
		return plan, nil
	}
	start, ok := s.flags.parse(argv)
	if !ok {
		return plan, nil
	}
	if err := o.check(); err != nil {
		return Injection{}, fmt.Errorf("integrate %s: %w", plan.Kind, err)
	}
	start.login = start.login || o.Login
	s.plan(&plan, start, o)
	return plan, nil
}

func (o InjectOptions) check() error {
	if len(o.Nonce) < minNonce || len(o.Nonce) > maxNonce {
		return fmt.Errorf("nonce of %d bytes, not %d to %d", len(o.Nonce), minNonce, maxNonce)
	}
	for _, c := range []byte(o.Nonce) {
		if !isWord(c) {
			return errors.New("nonce with a character other than letters, digits, - and _")
		}
	}
	if o.Dir == "" || strings.ContainsAny(o.Dir, "\x00\n\r") {
		return fmt.Errorf("folder %q for its files", o.Dir)
	}
	return nil
}

func (o InjectOptions) getenv(name string) string {
	if o.Getenv == nil {
		return ""
	}
	return o.Getenv(name)
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}
