package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tether/agent/config"
	"tether/cmd/tether/internal/display"
	"tether/platform/dirs"
	"tether/platform/proc"
)

// knownVars are tether's environment variables that are not keys of the configuration.
var knownVars = []string{dirs.HomeVar, allowRootVar, holdersVar, tokenVar, proc.TagVar, proc.AgentVar}

// strangeText returns a text that names environment variables that look like tether's but are unknown; "" if there are none.
func strangeText() string {
	_, strange, _ := config.FromEnv(os.Environ(), knownVars...)
	if len(strange) == 0 {
		return ""
	}
	return "unknown variables, ignored: " + display.Printable(strings.Join(strange, ", "), 200)
}

// flagKeys returns the keys of the configuration that are also flags.
func flagKeys() []config.Key {
	return slices.DeleteFunc(config.Keys(), func(k config.Key) bool { return k.Variable() == "" })
}

// settingFlags gives a command a flag for every key of the configuration. Completions and manual pages have them. Help does not list them,
// as there are too many: tether config keys does.
func settingFlags(c *cobra.Command) {
	for _, k := range flagKeys() {
		text := k.Meaning + " (`" + k.Kind + "`, default " + k.Value
		if k.Allowed != "" {
			text += "; " + k.Allowed
		}
		text += ")"
		c.Flags().String(k.Name, "", text)
		_ = c.RegisterFlagCompletionFunc(k.Name, cobra.FixedCompletions(k.Words(), cobra.ShellCompDirectiveNoFileComp)) // cannot fail: the flag exists
	}
	usage := c.UsageFunc()
	c.SetUsageFunc(func(c *cobra.Command) error {
		for _, k := range flagKeys() {
			c.Flags().Lookup(k.Name).Hidden = true
		}
		return usage(c)
	})
}

func configKeysCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "keys", Short: "list the keys with allowed values and defaults", Args: noArgs,
		Long: `list the keys with allowed values and defaults.

Each key is also a flag of tether daemon and an environment variable: lend.default
is --lend.default and TETHER_LEND_DEFAULT. docs/CONFIG.md describes each key, and
the tables that only the file can contain. For JSON: tether config view --json`,
		RunE: func(*cobra.Command, []string) error {
			w := a.table("KEY\tKIND\tALLOWED\tDEFAULT\tWHAT IT DOES")
			for _, k := range flagKeys() {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.Name, k.Kind, cmp.Or(k.Allowed, "-"), display.Printable(k.Value, 40), k.Meaning)
			}
			return w.Flush()
		}}
}

// nearFlag returns the flag that was most likely meant by an unknown flag, or "" if none is similar.
func nearFlag(c *cobra.Command, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return ""
	}
	name, _, _ = strings.Cut(name, "=")
	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return config.Nearest(name, flags)
}

// fromFlags returns the keys that the command line gives a value.
func fromFlags(c *cobra.Command) []config.Setting {
	var set []config.Setting
	for _, k := range config.Keys() {
		if f := c.Flags().Lookup(k.Name); f != nil && f.Changed {
			set = append(set, config.Setting{Key: k.Name, Value: f.Value.String(), Source: config.FromFlag})
		}
	}
	return set
}

// fromEnv returns the keys that the environment gives a value.
func fromEnv() []config.Setting {
	set, _, _ := config.FromEnv(os.Environ(), knownVars...)
	return set
}

// settingArgs returns the setting flags of this command line, for a daemon that this command starts.
func settingArgs(set []config.Setting) []string {
	var args []string
	for _, s := range set {
		args = append(args, s.String()+"="+s.Value)
	}
	return args
}
