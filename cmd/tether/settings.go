package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tether/agent/config"
	"tether/cmd/tether/internal/display"
	"tether/platform/dirs"
	"tether/platform/proc"
)

// knownVars are tether's environment variables that are not keys of the configuration.
var knownVars = []string{dirs.HomeVar, allowRootVar, tokenVar, proc.TagVar, proc.AgentVar}

// strangeText returns a text that names environment variables that look like tether's but
// are unknown; "" if there are none.
func strangeText() string {
	_, strange, _ := config.FromEnv(os.Environ(), knownVars...)
	if len(strange) == 0 {
		return ""
	}
	return "unknown variables, ignored: " + display.Printable(strings.Join(strange, ", "), 200)
}

// sets is the value of the flag --set.
type sets []config.Setting

// String implements pflag.Value: by default nothing is set.
func (*sets) String() string { return "" }

// Type implements pflag.Value.
func (*sets) Type() string { return "KEY=VALUE" }

// Set implements pflag.Value.
func (s *sets) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want KEY=VALUE")
	}
	*s = append(*s, config.Setting{Key: key, Value: value, Source: config.FromFlag})
	return nil
}

// setFlag gives a command the flag --set for keys of the configuration.
func setFlag(c *cobra.Command, s *sets) {
	c.Flags().Var(s, "set", "set a `KEY=VALUE` of the configuration; may be repeated; tether config keys lists the keys")
	_ = c.RegisterFlagCompletionFunc("set", func(_ *cobra.Command, _ []string, typed string) (words []cobra.Completion, _ cobra.ShellCompDirective) { // cannot fail: the flag exists
		given, _, valued := strings.Cut(typed, "=")
		for _, k := range config.Keys() {
			switch {
			case valued && k.Name == given:
				for _, w := range k.Words() {
					words = append(words, k.Name+"="+w)
				}
			case !valued && k.Settable():
				words = append(words, cobra.CompletionWithDesc(k.Name+"=", k.Meaning))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

func configKeysCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "keys", Short: "list the keys with allowed values and defaults", Args: noArgs,
		Long: `list the keys with allowed values and defaults.

The file or tether daemon --set KEY=VALUE gives a key a value. docs/CONFIG.md
describes each key, and the tables that only the file can contain. For JSON:
tether config view --json`,
		RunE: func(*cobra.Command, []string) error {
			w := a.table("KEY\tKIND\tALLOWED\tDEFAULT\tWHAT IT DOES")
			for _, k := range config.Keys() {
				if !k.Settable() {
					continue
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.Name, k.Kind, cmp.Or(k.Allowed, "-"), display.Printable(k.Value, 40), k.Meaning)
			}
			return w.Flush()
		}}
}

// nearFlag returns the flag that was most likely meant by an unknown flag, or "" if none
// is similar.
func nearFlag(c *cobra.Command, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return ""
	}
	name, _, _ = strings.Cut(name, "=")
	if section, _, key := strings.Cut(name, "."); key && section != "" {
		return "set " + cmp.Or(config.Nearest(name, config.SettableKeys()), "KEY") + "=VALUE"
	}
	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return config.Nearest(name, flags)
}

// fromEnv returns the keys that the environment gives a value.
func fromEnv() []config.Setting {
	set, _, _ := config.FromEnv(os.Environ(), knownVars...)
	return set
}

// settingArgs returns the setting flags of this command line, for a daemon that this
// command starts.
func settingArgs(set []config.Setting) (args []string) {
	for _, s := range set {
		args = append(args, "--set", s.Key+"="+s.Value)
	}
	return args
}
