package agenttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a command.
const (
	maxArgs = 1000      // number of arguments
	maxArgv = 128 << 10 // bytes of all arguments together; Linux allows as many for one (MAX_ARG_STRLEN)
)

// Spawned is the answer of spawn_background_terminal: the new terminal.
type Spawned struct{ Metadata }

func (s *Set) spawnTool() tool {
	return tool{Tool: Tool{
		Name: "spawn_background_terminal", Title: "Spawn a background terminal",
		Description: "Spawn a background terminal for running dev servers, watchers, tests etc. The command is executed directly, without a shell; for pipes and the like use [\"sh\",\"-c\",\"…\"], on Windows [\"cmd\",\"/c\",\"…\"]. Ask for a port of its own for a server. It is yours: the user does not see it among their own terminals until you promote it, but may look at it and end it. It ends after some minutes without any output or input. Some commands are blocked, some wait for the user's approval: when you are told to call again, repeat the call unchanged. There are limits to how many you may spawn.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"cwd":{"type":"string","description":"absolute path of the working directory"},"command":{"type":"array","items":{"type":"string"},"minItems":1,"description":"program and arguments, such as [\"npm\",\"run\",\"dev\"]"},` +
			`"port":{"type":"string","description":"\"auto\" for a free TCP port, the same as before if that is free, or a number: set as PORT and in place of {port} in the arguments, such as [\"npx\",\"vite\",\"--port\",\"{port}\"]; the answer has it"}},"required":["cwd","command"],"additionalProperties":false}`),
		Destructive: true, OpenWorld: true,
	}, call: func(ctx context.Context, c call) (Result, error) {
		var in struct {
			Cwd     string          `json:"cwd"`
			Command []string        `json:"command"`
			Port    json.RawMessage `json:"port"` // a string, or the number that models like to write
		}
		if err := c.decode(&in); err != nil {
			return Result{}, err
		}
		if err := checkSpawn(in.Cwd, in.Command); err != nil {
			return Result{}, err
		}
		defer c.Progress(ctx, "starting, perhaps once the user has approved it")()
		port := strings.TrimPrefix(strings.Trim(string(in.Port), `"`), "null")
		i, err := s.control.Spawn(ctx, SpawnRequest{Cwd: in.Cwd, Command: in.Command, Port: port})
		if err != nil {
			return Result{}, err
		}
		return Result{Answer: Spawned{metadataOf(i)}, Structured: detailsOf(i)}, nil
	}}
}

func checkSpawn(cwd string, command []string) error {
	size := 0
	for _, arg := range command {
		size += len(arg) + 1
	}
	switch {
	case cwd == "":
		return errors.New("cwd is missing: the absolute path of a directory")
	case len(command) == 0 || command[0] == "":
		return errors.New(`command is missing: a program and its arguments, such as ["npm","run","dev"]`)
	case len(command) > maxArgs || size > maxArgv:
		return fmt.Errorf("command is too long: at most %d words and %d bytes", maxArgs, maxArgv)
	case strings.ContainsRune(cwd, 0) || slices.ContainsFunc(command, func(a string) bool { return strings.ContainsRune(a, 0) }):
		return errors.New("cwd and command must not contain NUL characters")
	}
	return nil
}
