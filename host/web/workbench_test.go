package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/host/shells"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// hostProcess starts tether-host and returns its address. Its token file has the returned
// token.
func hostProcess(t *testing.T) (address, token string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "tether-host")
	must.Do(t, testkit.Build(dir))
	own := filepath.Join(dir, "own.token")
	c := exec.Command(program, "--listen", "127.0.0.1:0", "--tokens", filepath.Join(dir, "state", "tokens.json"), "--token-file", own)
	c.Env = append(os.Environ(), "HOME="+dir, "TETHER_ALLOW_ROOT=1")
	out := must.Get(c.StdoutPipe())(t)
	testkit.StartTree(t, c)
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "READY ws://")
	if err != nil || !ok {
		t.Fatalf("the host says %q, %v", line, err)
	}
	data := must.Get(os.ReadFile(own))(t)
	return address, strings.TrimSpace(string(data))
}

// get returns a server's answer, "" while it does not answer.
func get(t *testing.T, url, token string) string {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil))(t)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// firstRow returns the first row of VS Code's list of commands.
const firstRow = `(document.querySelector('.quick-input-widget:not([style*="display: none"]) .quick-input-list .monaco-list-row')?.getAttribute('aria-label') ?? '')`

// pick types a name into the list, and takes the first row once that is the command.
func (b *browser) pick(name string) {
	b.t.Helper()
	b.do("type", args{"text": name}, nil)
	_, row, found := strings.Cut(name, ": ") // the list omits the category if all matches have the same one
	if !found {
		row = name
	}
	js := must.Get(json.Marshal(row))(b.t)
	b.wait(firstRow + ".includes(" + string(js) + ")")
	b.do("key", args{"key": "Enter"}, nil)
}

// command runs a command of VS Code.
func (b *browser) command(name string) {
	b.t.Helper()
	testkit.Eventually(b.t, testkit.Patience, "the list of commands", func() bool {
		b.do("key", args{"key": "F1"}, nil) // F1 has no effect before the workbench is ready
		return b.text(firstRow) != ""
	})
	b.pick(name)
}

// An unmodified VS Code uses tether-host as its agent host: it connects, starts a shell
// there, types into it, and ends it.
func TestVSCodesWorkbench(t *testing.T) {
	oneNode(t, "the workbench speaks AHP, which host/cluster tests at every node")
	b := newBrowser(t)
	address, token := hostProcess(t)
	url := testkit.StartVSCodeWorkbench(t, "../..", address, token)
	testkit.Eventually(t, testkit.Patience, "VS Code's server answers", func() bool { return get(t, url, "") != "" })
	list := func() []shells.Shell {
		var got struct{ Shells []shells.Shell }
		must.Do(t, json.Unmarshal([]byte(get(t, "http://"+address+"/shells", token)), &got))
		return got.Shells
	}
	b.do("open", nil, nil)
	b.do("goto", args{"url": url + "/?ew=true"}, nil) // without a folder no question about trust appears
	b.wait("document.querySelector('.monaco-workbench .part.statusbar')")

	testkit.Eventually(t, testkit.Patience, "VS Code offers terminals of the host", func() bool { // after it has connected
		b.command("Terminal: Create New Terminal (With Profile)")
		b.wait(`/profile/i.test(document.querySelector('.quick-input-widget input')?.placeholder ?? '')`)
		there := b.text(`String([...document.querySelectorAll('.quick-input-list .monaco-list-row')].some(r => r.getAttribute('aria-label').includes('Agent Host (Local)')))`)
		if there != "true" {
			b.do("key", args{"key": "Escape"}, nil)
		}
		return there == "true"
	})
	b.pick("Agent Host (Local)")
	testkit.Eventually(t, testkit.Patience, "the host has a shell of VS Code's", func() bool { return len(list()) == 1 })
	shell := list()[0]
	if shell.Owner != "VS Code" || shell.AloneSince != nil {
		t.Errorf("the shell is %+v", shell)
	}

	b.command("Terminal: Focus on Terminal View")
	b.wait("document.activeElement?.classList.contains('xterm-helper-textarea')")
	b.do("type", args{"text": "echo workbench-$((40+2))\n"}, nil)
	testkit.Eventually(t, testkit.Patience, "what is typed reaches the shell", func() bool {
		return strings.Contains(get(t, "http://"+address+"/terminals/"+shell.ID+".txt", token), "\nworkbench-42")
	})
	b.shot("vscode-workbench")

	b.command("Terminal: Kill the Active Terminal Instance")
	testkit.Eventually(t, testkit.Patience, "the shell is gone", func() bool { return len(list()) == 0 })
}
