package command

import (
	"slices"
	"strings"
)

// unlisted looks for commands behind a program that is in no table: many programs run
// their operands, and no table knows them all. It knows them by the name of a program
// among the words, by lines and code behind options, and by addresses such as
// exec:LINE.
func (r *reader) unlisted(c Command, in input) {
	for i := 1; i < len(c.Words); i++ {
		w := c.Words[i]
		switch rest := c.Words[i+1:]; {
		case r.text == "" && slices.Contains(operators, w.Text): // somebody meant a line
			return
		case !w.Fixed:
			if c.Words[i-1].Text == "--" || slices.Contains(runners, c.Name()) {
				r.out.findIn(Dynamic, c)
			}
		case w.Text == "--":
		case strings.HasPrefix(w.Text, "-"):
			if r.unlistedOption(c, w.Text, rest, in) {
				return
			}
		case isAddress(w.Text):
			r.out.findIn(InlineCode, c)
		case beginsCommand(w.Text, c.Words[1:i], rest):
			if IsShell(w.Text) {
				r.out.findIn(InlineCode, c)
			}
			r.command(c.Words[i:], in)
			return
		case strings.ContainsAny(w.Text, " \t\n"):
			r.unlistedLine(w)
		}
	}
}

// behindDashes looks for a command behind "--" where a row of the table does not say
// what stands there.
func (r *reader) behindDashes(c Command, in input) {
	i := slices.IndexFunc(c.Words, func(w Word) bool { return w.Text == "--" })
	if i < 0 || i+1 >= len(c.Words) {
		return
	}
	if rest := c.Words[i+1:]; rest[0].Fixed && beginsCommand(rest[0].Text, nil, rest[1:]) {
		r.command(rest, in)
	}
}

// unlistedOption notes what an option may run, judged by its name. It reports whether
// all words behind it belong to that.
func (r *reader) unlistedOption(c Command, option string, rest []Word, in input) bool {
	name, value, attached := strings.Cut(strings.TrimLeft(option, "-"), "=")
	if !attached && len(rest) > 0 {
		value = rest[0].Text
	}
	long := strings.HasPrefix(option, "--") || len(name) > 3
	switch {
	case !attached && len(rest) > 0 && strings.HasSuffix(name, "c") && !strings.HasPrefix(option, "--") && endsInShell(c.Name()):
		r.out.findIn(InlineCode, c)
		r.lineIn(rest[0], in)
		return true
	case strings.HasPrefix(name, "javaagent:"), strings.HasPrefix(name, "agentlib:"), strings.HasPrefix(name, "agentpath:"), strings.HasPrefix(name, "XX:On"):
		r.out.findIn(InlineCode, c)
	case long && (name == "eval" || name == "execute"):
		r.out.findIn(InlineCode, c)
	case long && namesRunner(name):
		if attached {
			rest = []Word{{value, true}}
		}
		if len(rest) > 0 {
			r.runByOption(c, rest[0])
		}
	case long || attached || len(rest) == 0:
	case strings.HasSuffix(name, "c") && rest[0].Fixed && strings.ContainsAny(value, " \t\n;|&<>`$"),
		strings.HasSuffix(name, "e") && rest[0].Fixed && strings.ContainsAny(value, "();{}`"):
		r.out.findIn(InlineCode, c)
	}
	return false
}

// runByOption reads the value of an option that names a helper of the program, or is a
// line. Nobody expects that tar or scp run something: only the usual helpers pass.
func (r *reader) runByOption(c Command, w Word) {
	first, _, _ := strings.Cut(w.Text, " ")
	if w.Fixed && !(slices.Contains(helpers, baseName(first)) && (!isPath(first) || Installed(first))) {
		r.out.findIn(InlineCode, c)
	}
	before := len(r.out.Findings)
	r.lineIn(w, input{})
	if len(r.out.Findings) == before+1 && r.out.Findings[before].Kind == Interactive && baseName(first) == "ssh" {
		r.out.Findings = r.out.Findings[:before] // c adds the host and what runs there
	}
}

// helpers are programs that others usually start by an option: compressors, transports,
// filters and viewers.
var helpers = []string{"gzip", "gunzip", "zcat", "pigz", "bzip2", "pbzip2", "lbzip2", "xz", "pixz", "zstd", "zstdmt", "lz4", "lzop", "lzip", "plzip", "brotli", "compress",
	"ssh", "nc", "cat", "head", "less", "more", "most", "bat", "batcat", "delta", "diff", "difft", "vimdiff", "meld", "opendiff", "pdftotext", "rsync", "git-upload-pack",
	"git-receive-pack", "kustomize", "echo", "ls", "tree", "file", "jq", "grep", "rg", "git", "true", "false", "none"}

// unlistedLine reads an operand that looks like a line: it begins with the name of a
// program.
func (r *reader) unlistedLine(w Word) {
	first, rest, _ := strings.Cut(strings.TrimSpace(w.Text), " ")
	if !isProse(w.Text) && beginsCommand(first, nil, []Word{{rest, true}}) {
		r.lineIn(w, input{})
	}
}

// isProse reports whether a text that begins with the name of a program may be a
// sentence.
func isProse(s string) bool {
	words := strings.Fields(s)
	letters := func(w string) bool { return strings.Trim(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz.,:!?'") == "" }
	return len(words) > 1 && letters(words[1]) && (slices.Contains(proseWords, words[0]) || len(words) > 2 && letters(words[2]))
}

// runners only run others. They are in no table because nobody needs them with a shell,
// which a table would let pass.
var runners = []string{"tini", "dumb-init", "catatonit", "logsave", "daemonize", "chpst", "cpulimit", "timelimit", "cronic", "run-one", "with-contenv"}

// unmistakable are programs whose names are hardly ever the operands of others. Shells
// and interpreters are such names, too.
var unmistakable = []string{"rm", "rmdir", "unlink", "shred", "srm", "wipefs", "rimraf", "chmod", "chown", "chgrp", "mkfs", "mke2fs", "dd", "fdisk", "sfdisk", "parted",
	"shutdown", "reboot", "halt", "poweroff", "kill", "killall", "pkill", "sudo", "doas", "su", "pkexec", "runuser", "env", "xargs", "busybox", "toybox", "nohup", "setsid", "timeout",
	"stdbuf", "nice", "ionice", "chroot", "unshare", "nsenter", "curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "scp", "rsync", "tee", "cp", "mv", "ln", "sed", "gawk", "awk",
	"find", "git", "npx", "systemctl", "systemd-run", "crontab", "umount", "iptables", "truncate", "tar", "docker", "podman", "kubectl", "tini", "strace"}

// proseWords are names of programs with which a sentence may begin.
var proseWords = []string{"kill", "halt", "shutdown", "reboot", "find", "env", "node", "git", "docker", "su", "python", "expect", "truncate", "nice", "tar", "cp"}

// otherNames are names of shells and interpreters that are also ordinary words, or
// names of data.
var otherNames = []string{"cmd", "red", "view", "ex", "r", "ed", "nu", "scala", "expect", "vi", "oil", "code", "es", "rc", "ion", "fish", "groovy", "elixir", "swift", "crystal"}

// operators separate commands in a line. As words of an argv they have no meaning.
var operators = []string{"|", "|&", "||", "&&", "&", ";", ">", ">>", "<", "<<"}

// beginsCommand reports whether a word of a program in no table is the name of a
// program that is run with the words after it.
func beginsCommand(word string, before, after []Word) bool {
	if isPath(word) && !(strings.HasPrefix(word, "/") && strings.Contains(word, "bin/")) {
		return false
	}
	name := baseName(word)
	switch {
	case strings.ContainsAny(name, " \t\n"), slices.Contains(otherNames, name):
		return false
	case slices.Contains(unmistakable, name), strings.HasPrefix(name, "mkfs."):
		return true
	case shellNamed(name) != "":
		return !forCompletion(before, after)
	}
	return len(after) > 0 && interpreterOf(name) != nil
}

// forCompletion reports whether a shell's name only selects what a program prints: foo
// completion bash, foo --shell zsh.
func forCompletion(before, after []Word) bool {
	selects := slices.ContainsFunc(before, func(w Word) bool {
		return strings.Contains(w.Text, "complet") || slices.Contains([]string{"init", "hook", "activate", "env", "shellenv", "--shell", "-s", "--type", "--lang", "--language"}, w.Text)
	})
	return selects && !slices.ContainsFunc(after, func(w Word) bool { return !strings.HasPrefix(w.Text, "--") })
}

// Installed reports whether a path is that of a program where systems keep programs.
// What is elsewhere may be anybody's, whatever its name.
func Installed(path string) bool {
	path = strings.ToLower(strings.ReplaceAll(path, `\`, "/"))
	if len(path) > 2 && path[1] == ':' { // a drive
		path = path[2:]
	}
	if !strings.Contains(path, "/bin/") && !strings.Contains(path, "/sbin/") || strings.Contains(path, "/../") {
		return false
	}
	return slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/", "/opt/", "/nix/", "/gnu/", "/snap/", "/run/current-system/", "/home/linuxbrew/", "/c/", "/program files"}, func(root string) bool {
		return strings.HasPrefix(path, root)
	})
}

// isPath reports whether a program is named by its path, and not looked for in PATH.
func isPath(word string) bool { return strings.ContainsAny(word, `/\`) }

// namesRunner reports whether an option's name says that its value is a command:
// --exec, --pre-command.
func namesRunner(name string) bool {
	last := name[strings.LastIndexAny(name, "-_.")+1:]
	return slices.Contains([]string{"exec", "command", "cmd", "rsh", "startas", "pager", "editor", "askpass"}, strings.ToLower(last))
}

// isAddress reports whether an operand is an address by which relays of bytes start a
// program, such as EXEC:LINE of socat's.
func isAddress(s string) bool {
	for part := range strings.SplitSeq(strings.ToLower(s), "!!") {
		for _, kind := range []string{"exec:", "system:", "shell:", "sh-c:", "cmd:"} {
			if strings.HasPrefix(part, kind) {
				return true
			}
		}
	}
	return false
}
