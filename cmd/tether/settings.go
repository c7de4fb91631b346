package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/platform/dirs"
	"tether/platform/proc"
)

// knownVars are variables of tether's that are no keys of the configuration.
var knownVars = []string{dirs.HomeVar, allowRootVar, holdersVar, proc.TagVar}

// strangeText names variables that look like tether's and are not, "" if there are none.
func strangeText() string {
	_, strange, _ := config.FromEnv(os.Environ(), knownVars...)
	if len(strange) == 0 {
		return ""
	}
	return "no variables of tether's, and ignored: " + printable(strings.Join(strange, ", "), 200)
}

// settingFlags gives a command a flag for every key of the configuration. Help does not list them: there are too many.
func settingFlags(c *cobra.Command) {
	for _, k := range config.Keys() {
		if k.Variable() == "" {
			continue
		}
		c.Flags().String(k.Name, "", k.Kind+", instead of what is configured")
		_ = c.Flags().MarkHidden(k.Name) // there is one
	}
}

// nearFlag is the flag of a key that was most likely meant by one that is unknown to a command that takes keys.
func nearFlag(c *cobra.Command, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if near := config.Near(name); unknown && c.Flags().Lookup(near) != nil {
		return near
	}
	return ""
}

// fromFlags are the keys that the command line gives a value.
func fromFlags(c *cobra.Command) []config.Setting {
	var set []config.Setting
	for _, k := range config.Keys() {
		if f := c.Flags().Lookup(k.Name); f != nil && f.Changed {
			set = append(set, config.Setting{Key: k.Name, Value: f.Value.String(), Source: config.FromFlag})
		}
	}
	return set
}

// fromEnv are the keys that the environment gives a value.
func fromEnv() []config.Setting {
	set, _, _ := config.FromEnv(os.Environ(), knownVars...)
	return set
}

// settingArgs are the flags again, for a daemon that is started for this one.
func settingArgs(set []config.Setting) []string {
	var args []string
	for _, s := range set {
		args = append(args, s.String()+"="+s.Value)
	}
	return args
}
