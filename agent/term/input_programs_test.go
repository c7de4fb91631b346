package term_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// asking is a program that waits for somebody, and the expected state of its terminal.
type asking struct {
	name  string
	needs []string // programs
	line  string   // for sh
	want  []vocab.InputState
}

var (
	input      = []vocab.InputState{vocab.InputAwaiting}
	hidden     = []vocab.InputState{vocab.InputSecret}
	fullScreen = []vocab.InputState{vocab.InputFullScreen}
)

// askingPrograms do so in a directory of their own, which is their home.
var askingPrograms = []asking{
	{"sudo", []string{"sudo", "runuser"}, "exec runuser -u nobody -- sudo -k true", hidden},
	{"su", []string{"su", "runuser"}, "exec runuser -u nobody -- su root -c true", hidden},
	{"passwd", []string{"passwd"}, "exec passwd", hidden},
	{"ssh-keygen, a file", []string{"ssh-keygen"}, "exec ssh-keygen -q -t ed25519", input},
	{"ssh-keygen, a passphrase", []string{"ssh-keygen"}, "exec ssh-keygen -q -t ed25519 -f k", hidden},
	{"openssl, a passphrase", []string{"openssl"}, "exec openssl enc -aes-256-cbc -pbkdf2 -in f -out g", hidden},
	{"openssl, a request", []string{"openssl"}, "exec openssl req -new -newkey rsa:2048 -nodes -keyout k -out r", input},
	{"gpg", []string{"gpg", "gpg-agent"}, "exec gpg --pinentry-mode loopback -o x -c f", hidden},
	{"zip, a password", []string{"zip"}, "exec zip -q -e x.zip f", append(hidden, input...)},
	{"rm", []string{"rm"}, "exec rm -i f", input},
	{"cp", []string{"cp"}, "exec cp -i f g", input},
	{"apt", []string{"apt-get", "bc"}, "exec apt-get -o Debug::NoLocking=1 --no-download remove bc", input},
	{"git add -p", []string{"git"}, "git init -q . && git add f && git -c user.name=a -c user.email=b commit -qm x && echo more >>f && exec git add -p", input},
	{"git, a name", []string{"git"}, "exec git -c credential.helper= credential fill <u", input},
	{"git, a password", []string{"git"}, "exec git -c credential.helper= -c credential.username=me credential fill <u", hidden},
	{"npm init", []string{"npm"}, "exec npm init", input},
	{"node, readline", []string{"node"}, "exec node -e 'require(\"readline\").createInterface(process.stdin,process.stdout).question(\"name? \",()=>{})'", input},
	{"node, its prompt", []string{"node"}, "exec node", input},
	{"python, input", []string{"python3"}, "exec python3 -c 'input(\"name? \")'", input},
	{"python, getpass", []string{"python3"}, "exec python3 -c 'import getpass; getpass.getpass()'", hidden},
	{"python, its prompt", []string{"python3"}, "exec python3 -q", input},
	{"bash, read", []string{"bash"}, "exec bash -c 'read -p \"sure? \" x'", input},
	{"bash, read -s", []string{"bash"}, "exec bash -c 'read -s -p \"password: \" x'", hidden},
	{"bash, read -n 1", []string{"bash"}, "exec bash -c 'read -n 1 -p \"any key \" x'", input},
	{"zsh, read", []string{"zsh"}, "exec zsh -fc 'read \"x?name: \"'", input},
	{"sh, read without a prompt", []string{"sh"}, "read x", input},
	{"sh, which is ready three seconds after its prompt", []string{"sh"}, "printf 'name: '; sleep 3; read x", input},
	{"cat", []string{"cat"}, "exec cat", input},
	{"bc", []string{"bc"}, "exec bc -q", input},
	{"sqlite3", []string{"sqlite3"}, "exec sqlite3", input},
	{"lua", []string{"lua5.4"}, "exec lua5.4 -i", input},
	{"gdb", []string{"gdb"}, "exec gdb -q -nx", input},
	{"perl", []string{"perl"}, "exec perl -e '$|=1; print \"name: \"; <STDIN>'", input},
	{"ed", []string{"ed"}, "exec ed -p : f", input},
	{"fdisk", []string{"fdisk"}, "truncate -s 8M disk; exec fdisk disk", input},
	{"more", []string{"more"}, "exec more long", input},
	{"less without the other screen", []string{"less"}, "exec less -X long", input},
	{"less", []string{"less"}, "exec less long", fullScreen},
	{"vim", []string{"vim"}, "exec vim -u NONE f", fullScreen},
	{"nano", []string{"nano"}, "exec nano f", fullScreen},
	{"fzf", []string{"fzf"}, "exec fzf <long", fullScreen},
	{"dialog", []string{"dialog"}, "exec dialog --yesno sure 10 20", append(fullScreen, input...)},
	{"tmux", []string{"tmux"}, "exec tmux -L $$ -f /dev/null new sh", fullScreen},
}

// workplace is a directory with input for the programs.
func workplace(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{"f": "one\n", "g": "two\n", "u": "protocol=https\nhost=nowhere.invalid\n\n", "long": strings.Repeat("line\n", 300)} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// runs starts a line of the shell in a terminal.
func runs(t *testing.T, pool *term.Pool, dir, line string) term.Handle {
	t.Helper()
	// In continuous integration many programs ask nothing, and watchers do not watch.
	env := append(os.Environ(), "HOME="+dir, "TERM=xterm-256color", "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "NODE_PATH="+modules(), "HISTFILE=", "NO_UPDATE_NOTIFIER=1", "GNUPGHOME="+dir)
	return must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{"sh", "-c", "unset CI; " + line}, Env: env, Cwd: dir}))(t)
}

// modules is where scripts/test-tools.sh puts packages of npm that tests run.
func modules() string {
	dir, _ := filepath.Abs("../../bin/tools/watchers/node_modules")
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	return dir
}

func missing(needs []string) string {
	for _, name := range needs {
		if module, ok := strings.CutPrefix(name, "watchers/"); ok {
			if _, err := os.Stat(filepath.Join(modules(), module)); err != nil {
				return module
			}
			continue
		}
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// Programs that wait for somebody are found without a query, in time.
func TestProgramsThatAsk(t *testing.T) {
	pool := term.NewPool(term.Options{KillGrace: time.Millisecond})
	t.Cleanup(func() { pool.Close(context.Background()) })
	for _, p := range askingPrograms {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if name := missing(p.needs); name != "" {
				t.Skip("not installed: " + name)
			}
			h := runs(t, pool, workplace(t), strings.ReplaceAll(p.line, "MODULES", modules()))
			began := time.Now()
			for {
				in, changed := h.LastInput()
				if slices.Contains(p.want, in.Input) {
					t.Logf("%s after %v, found within %v: %q", in.Input, in.InputSince.Sub(began).Round(time.Millisecond), time.Since(in.InputSince).Round(time.Millisecond), in.Prompt)
					return
				}
				select {
				case <-changed:
				case <-time.After(testkit.Patience): // npm alone takes many seconds to start on a busy machine
					t.Fatalf("%+v; want %v", in, p.want)
				}
			}
		})
	}
}
