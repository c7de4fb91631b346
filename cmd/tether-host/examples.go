package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are command lines for --help and the manual pages, by command. A test reads
// each as the command does.
var examples = map[string]string{
	"tether-host": "tether-host --token-file token\n" +
		"tether-host --listen 0.0.0.0:9187 --tls-cert cert.pem --tls-key key.pem",
	"tether-host pending": "tether-host pending\ntether-host pending --json",
	"tether-host approve": "tether-host approve 123456\ntether-host approve 123456 --owner ann",
	"tether-host token create": "tether-host token create laptop --role machine > laptop.token\ntether-host token create ci --once > ci.token\n" +
		"tether-host token create helper --role agent --owner ann > helper.token",
	"tether-host token owner":        "tether-host token owner laptop ann",
	"tether-host people on":          "tether-host people on",
	"tether-host people off":         "tether-host people off",
	"tether-host group ls":           "tether-host group ls",
	"tether-host grants ls":          "tether-host grants ls --json",
	"tether-host people ls":          "tether-host people ls --json",
	"tether-host people rm":          "tether-host people rm bob",
	"tether-host group add":          "tether-host group add web ann bob",
	"tether-host group rm":           "tether-host group rm web bob",
	"tether-host grant":              "tether-host grant build-box --to group:web,agent:ci",
	"tether-host grants end":         "tether-host grants end build-box group:web",
	"tether-host token ls":           "tether-host token ls",
	"tether-host token revoke":       "tether-host token revoke laptop",
	"tether-host mcp":                "claude mcp add terminals -- tether-host mcp --url wss://host.example --token-file agent.token",
	"tether-host link":               "tether-host link --token-file token",
	"tether-host shells":             "tether-host shells --token-file token",
	"tether-host terminals":          "tether-host terminals --token-file token",
	"tether-host terminals withdraw": "tether-host terminals withdraw --token-file token pty-5kqxufsr27 bob",
	"tether-host shells end":         "tether-host shells end --token-file token 3f2a",
	"tether-host conform":            "tether-host conform --token-file token wss://host.example",
	"tether-host audit verify":       "tether-host audit verify /var/lib/tether/audit.jsonl",
	"tether-host events":             "tether-host events --url wss://host.example --token-file agent.token\ntether-host events laptop/web --pattern '(?i)error' --token-file agent.token",
}

// addExamples adds examples to the command and those below it.
func addExamples(c *cobra.Command) {
	if text := examples[c.CommandPath()]; text != "" {
		c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	for _, sub := range c.Commands() {
		addExamples(sub)
	}
}
