package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
)

// examples are command lines for --help and the manual pages, by command, for commands
// without their own. A test parses each of them as the command does.
var examples = map[string]string{
	"run":               "tether run -- npm run dev\ntether run --name build --detach -- make -j8\ntether run --private -- psql",
	"shell":             "tether shell\ntether shell --name scratch --private\ntether shell -- fish",
	"sandbox":           "tether sandbox -- claude\ntether sandbox --as gemini -- npx gemini",
	"ls":                "tether ls\ntether ls --json | jq -r '.terminals[] | select(.exit == null) | .id'",
	"read":              "tether read web --tail 50\ntether read --follow web\ntether read --command 3 shell\ntether read --screen editor\ntether read --run pty-k3f9x2ab.3 --digest",
	"problems":          "tether problems web\ntether problems --json web | jq '.problems[] | select(.severity == \"error\")'",
	"fetch":             "tether fetch web /\ntether fetch web /api/users --include\ntether fetch web / --readable --port 5173",
	"commands":          "tether commands shell\ntether commands --json shell | jq '.commands[-1].exit'",
	"kill":              "tether kill web\ntether kill pty-k3f9x2ab build",
	"unpair":            "tether unpair work",
	"login":             "tether login work\ntether login wss://host.example --code",
	"logout":            "tether logout work",
	"host ls":           "tether host ls\ntether host ls --json | jq -r '.hosts[].name'",
	"host use":          "tether host use work",
	"host tools":        "tether host tools work on",
	"host retry":        "tether host retry work",
	"host rename":       "tether host rename local work",
	"host rm":           "tether host rm work",
	"lend":              "tether lend web\ntether lend web --host work --for 1h\ntether lend web --port 3000",
	"unlend":            "tether unlend web\ntether unlend web --port 3000\ntether unlend --all",
	"share":             "tether share web\ntether share web --host work --for 30m --once\ntether share web --here --via ssh:dev.example --for 30m",
	"shares":            "tether shares\ntether shares --json",
	"unshare":           "tether unshare web",
	"demo":              "tether demo",
	"watch":             "tether watch - <link.txt\ntether watch work\ntether watch work web --wait\ntether watch wss://host.example --list --token-file token",
	"mcp":               "claude mcp add tether -- tether mcp --as claude",
	"acp":               "tether acp -- gemini --experimental-acp",
	"approvals":         "tether approvals\ntether approvals --watch",
	"approve":           "tether approve q-4\ntether approve q-4 --for 10m\ntether approve q-4 --deny",
	"policy check":      "tether policy check -- rm -rf build\ntether policy check --line 'curl https://example.com | sh'",
	"audit verify":      "tether audit verify",
	"token create":      "tether token create cursor",
	"token ls":          "tether token ls",
	"token revoke":      "tether token revoke cursor",
	"token show":        "tether token show",
	"notify add":        "tether notify add phone\ntether notify add team --form mattermost",
	"notify ls":         "tether notify ls",
	"notify test":       "tether notify test phone\ntether notify test desktop",
	"notify remove":     "tether notify remove phone",
	"status":            "tether status\ntether status --json | jq -r '.hosts[].state'",
	"service install":   "tether service install\nsudo tether service install --system --user me",
	"service status":    "tether service status",
	"service logs":      "tether service logs --follow",
	"service start":     "tether service start",
	"service stop":      "tether service stop",
	"service restart":   "tether service restart",
	"service uninstall": "tether service uninstall\ntether service uninstall --keep",
	"daemon":            "tether daemon\ntether daemon --background\ntether daemon --replace --background",
	"stop":              "tether stop",
	"config path":       "tether config path",
	"config keys":       "tether config keys\ntether config keys | grep lend",
	"config view":       "tether config view\ntether config view --json | jq -r '.keys[].name'",
	"config check":      "tether config check",
	"whoami":            "tether whoami",
	"update":            "tether update\ntether update --from https://downloads.example/tether",
	"env":               "tether env\ntether env --refresh",
	"ui":                "tether ui",
	"version":           "tether version",

	"completion bash":       "tether completion bash > ~/.local/share/bash-completion/completions/tether",
	"completion zsh":        "tether completion zsh > ~/.zsh/completions/_tether",
	"completion fish":       "tether completion fish > ~/.config/fish/completions/tether.fish",
	"completion powershell": "tether completion powershell > tether.ps1",
	"help":                  "tether help config view",
}

// descriptions are the long help texts, by command, for commands without their own.
var descriptions = map[string]string{
	"ls": `list the terminals with state, age, owner, hosts, command and the URLs of listening
ports. Running terminals come first, newest first, then exited ones, then declared
terminals that are not running. In an interactive terminal, the list fits the window
and shows only the last few exited terminals; --all shows all.`,
	"read": `print the retained output of a terminal. In an interactive terminal, the output keeps
its colours. To a pipe or a file, or with NO_COLOR or TERM=dumb, it is plain text with
a line feed after each line. --color always keeps escape sequences, --raw prints every
byte unchanged. --follow continues until the terminal exits. --screen prints what the
terminal shows now: of a full-screen program, the whole screen, however long ago it was
drawn.`,
	"problems": `list what compilers, linters, test runners and interpreters complain about in a terminal,
with file and line, each once. Problems go away when a tool that watches files begins
anew, or the same command runs again. Secrets are masked unless --raw. From the first
question on, output is looked at as it comes, for ten minutes after the last question.`,
	"commands": `list the commands that a shell in a terminal ran, with their exit statuses. Only
shells with integration report commands; docs/SHELL-INTEGRATION.md lists them.`,
	"kill": `end terminals and all their processes: first with a request to terminate, then, after
a few seconds, by force. A declared terminal stays down until tether up.`,
	"status": `show the daemon, its hosts and the shared terminals. The answer is immediate, whatever
the state of the network: the daemon reports the state that it knows.`,
}

// addExamples adds the examples and descriptions to commands without their own.
func addExamples(c *cobra.Command, path string) {
	if text := examples[path]; c.Example == "" && text != "" {
		c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	c.Long = cmp.Or(c.Long, descriptions[path])
	for _, sub := range c.Commands() {
		addExamples(sub, strings.TrimSpace(path+" "+sub.Name()))
	}
}
