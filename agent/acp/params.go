package acp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/internal/jsonspan"
	tscreen "tether/screen"
)

// createParams is CreateTerminalRequest of the schema. Null means absent; anything else
// of a wrong type is an error, as in the official SDK.
type createParams struct {
	SessionID       string    `json:"sessionId"`
	Command         string    `json:"command"`
	Args            []*string `json:"args"`
	Env             []envVar  `json:"env"`
	Cwd             *string   `json:"cwd"`
	OutputByteLimit *uint64   `json:"outputByteLimit"`
}

type envVar struct {
	Name  *string `json:"name"`
	Value *string `json:"value"`
}

// terminalParams are the parameters of the other four methods.
type terminalParams struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId"`
}

// decode reads parameters, in which 20.0 is a whole number. Its errors name the wrong
// parameter.
func decode(params []byte, into any) error {
	if params == nil {
		params = []byte("{}")
	}
	if err := jsonspan.CheckText(params); err != nil {
		return invalid("params: %v", err)
	}
	err := json.Unmarshal(jsonspan.Whole(params), into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return invalid("params must be an object, not %s", wrong.Value)
		}
		return invalid("%s has the wrong type: %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return invalid("params: %v", err)
	}
	return nil
}

func decodeTerminal(params []byte) (p terminalParams, err error) {
	if err := decode(params, &p); err != nil {
		return p, err
	}
	if p.SessionID == "" || p.TerminalID == "" {
		return p, invalid("sessionId and terminalId are required")
	}
	return p, nil
}

func decodeCreate(params []byte) (*createParams, error) {
	var p createParams
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	switch {
	case p.SessionID == "":
		return nil, invalid("sessionId is required")
	case p.Command == "":
		return nil, invalid("command is required")
	case p.Cwd != nil && !filepath.IsAbs(*p.Cwd):
		return nil, invalid("cwd %.80q is not an absolute path", *p.Cwd)
	case slices.Contains(p.Args, nil):
		return nil, invalid("args must be strings")
	}
	for _, v := range p.Env {
		if v.Name == nil || v.Value == nil {
			return nil, invalid("env: each variable needs a name and a value")
		}
		if *v.Name == "" || strings.ContainsAny(*v.Name, "=\x00") || strings.ContainsRune(*v.Value, 0) {
			return nil, invalid("env: %.40q is not a valid variable: a name has no =, and neither part has a NUL", *v.Name)
		}
	}
	return &p, nil
}

// commands returns the possible meanings of the request, in the order in which to try
// them. Several agents send a whole shell line in command, without args.
func (p *createParams) commands(cwd string) []Command {
	c := Command{Cwd: cwd, Name: p.name()}
	for _, v := range p.Env {
		c.Env = append(c.Env, *v.Name+"="+*v.Value)
	}
	program, line := c, c
	program.Argv = []string{p.Command}
	for _, a := range p.Args {
		program.Argv = append(program.Argv, *a)
	}
	line.Line = p.Command
	switch {
	case len(p.Args) > 0 || p.isFile(cwd):
		return []Command{program}
	case isWord(p.Command):
		return []Command{program, line} // the word may be a shell builtin; if it is not, the shell's error is the clearest
	}
	return []Command{line}
}

// isFile reports whether the command is the path of a file.
func (p *createParams) isFile(cwd string) bool {
	path := p.Command
	if !strings.ContainsRune(path, filepath.Separator) && !strings.Contains(path, "/") {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// isWord reports whether every shell reads command as one plain word.
func isWord(command string) bool {
	return !strings.ContainsFunc(command, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return false
		}
		return !strings.ContainsRune("_@+,./:-", r)
	})
}

// maxName bounds a terminal's name, in characters.
const maxName = 60

// name returns the terminal's name for people: the first line of the script if the
// request is "shell -c script", else the first line of the command with its arguments.
func (p *createParams) name() string {
	words := []string{p.Command}
	for _, a := range p.Args {
		words = append(words, *a)
	}
	if n := len(words); n == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		words = words[n-1:]
	}
	name, _, _ := strings.Cut(strings.TrimSpace(strings.Join(words, " ")), "\n")
	runes := []rune(tscreen.Clean(name))
	if len(runes) > maxName {
		runes = append(runes[:maxName-1], '…')
	}
	return string(runes)
}
