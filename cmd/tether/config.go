package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/platform/dirs"
)

func configCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "show, check and change the configuration file", SuggestionsMinimumDistance: 2,
		Long: `show, check and change the configuration file.

The daemon reads it once, at start. To apply a change, run tether daemon --replace
--background; terminals keep running. docs/CONFIG.md lists the keys.

tether daemon --set KEY=VALUE overrides the file. tether config keys lists the keys.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(configPathCommand(a), configKeysCommand(a), configViewCommand(a), configCheckCommand(a), configEditCommand(a))
	return c
}

func configPathCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "path", Short: "print the path of the configuration file", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := dirs.Get()
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, config.Path(d))
			return nil
		}}
}

func configViewCommand(a *app) *cobra.Command {
	var asJSON bool
	var flags sets
	c := &cobra.Command{Use: "view", Short: "print every key, its effective value and the source of the value", Args: noArgs,
		Long: `print every key, the value that a daemon started now would use, and the source of
the value: flag, environment, file or default. The source allow-root means that you
have allowed the daemon to run as root. The command takes --set, as tether daemon does:
tether config view --set lend.default=no`,
		RunE: func(*cobra.Command, []string) error {
			path, settings, err := loadConfig(flags...)
			if err != nil {
				return err
			}
			from, err := config.Origins(path, append(fromEnv(), flags...)...)
			if err != nil {
				return err
			}
			if from["lend.as_root"] == "" && settings.Lend.AsRoot {
				from["lend.as_root"] = config.FromAllowRoot
			}
			if asJSON {
				return a.printJSON(configView(path, &settings, from))
			}
			return settings.WriteFrom(a.stdout, from)
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	setFlag(c, &flags)
	return c
}

// configuration is the output of config view --json.
type configuration struct {
	SchemaVersion int         `json:"schema_version"`
	Path          string      `json:"path"`
	Exists        bool        `json:"exists"`
	Keys          []configKey `json:"keys"`
}

type configKey struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
	Kind    string `json:"kind"`
	Allowed string `json:"allowed,omitempty"`
	From    string `json:"from"`               // flag, environment, file, allow-root or default
	Env     string `json:"variable,omitempty"` // environment variable, for few keys
}

func configView(path string, settings *config.Config, from map[string]config.Source) configuration {
	_, err := os.Stat(path)
	view := configuration{SchemaVersion: localapi.SchemaVersion, Path: path, Exists: err == nil}
	defaults := config.Keys()
	for i, k := range settings.Keys() {
		view.Keys = append(view.Keys, configKey{Name: k.Name, Value: k.Value, Default: defaults[i].Value, Kind: k.Kind, Allowed: k.Allowed,
			From: string(cmp.Or(from[k.Name], config.FromDefault)), Env: k.Variable()})
	}
	return view
}

func configCheckCommand(a *app) *cobra.Command {
	var flags sets
	c := &cobra.Command{Use: "check", Short: "check whether the configuration is valid", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			path, _, err := loadConfig(flags...)
			if err != nil {
				return err
			}
			if text := strangeText(); text != "" {
				a.notice("%s", text)
			}
			text := path + " is valid"
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				text = "no configuration file; using defaults (" + path + ")"
			}
			fmt.Fprintln(a.stdout, text)
			return nil
		}}
	setFlag(c, &flags)
	return c
}

// loadConfig reads the file, the environment and then the flags.
func loadConfig(flags ...config.Setting) (path string, c config.Config, err error) {
	d, err := dirs.Get()
	if err != nil {
		return "", c, err
	}
	path = config.Path(d)
	set, _, wrong := config.FromEnv(os.Environ(), knownVars...)
	if len(wrong) > 0 {
		return path, c, configError(&config.Error{Path: path, Problems: wrong})
	}
	if c, err = config.Load(path, append(set, flags...)...); err != nil {
		return path, c, configError(err)
	}
	if _, err = lendRoot(d, &c, append(set, flags...)); err != nil {
		return path, c, configError(err)
	}
	if _, err = policy.New(policy.Options{Config: c.Policy}); err != nil {
		return path, c, configError(fmt.Errorf("%s: %w", path, err))
	}
	if _, err = redact.Compile(redact.Options{Tokens: c.Lend.Redact, Patterns: c.Lend.RedactPatterns}); err != nil {
		return path, c, configError(fmt.Errorf("%s: lend.redact_patterns: %w", path, err))
	}
	return path, c, nil
}

// configError gives an error of the configuration the exit status of a wrong command
// line, since the person has to correct the configuration.
func configError(err error) error {
	if e, ok := errors.AsType[*config.Error](err); ok {
		return &usageError{message: e.Error(), hint: "correct or remove it, then check with: tether config check"}
	}
	return &usageError{message: "configuration: " + err.Error(), hint: "tether config path prints the path of the file"}
}
