package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"tether/internal/escape"
	"tether/platform/proc"
	"tether/platform/pty"
)

const (
	quiet    = time.Second // without output, after which a tool has said all
	maxLoud  = 20 * time.Second
	maxPause = 8 * time.Second // between two questions for the same URLs
	maxShown = 4000            // bytes of output in an error
	cols     = 120
	rows     = 40
)

// terminal records what a program prints.
type terminal struct {
	*pty.PTY
	patience time.Duration // for a state

	mu     sync.Mutex
	output []byte
	last   time.Time
}

// start runs a command of the shell in a new terminal, whose output follows what was
// printed before.
func start(command, dir string, env []string, before []byte, patience time.Duration) (*terminal, error) {
	p, err := pty.Start(pty.Command{Path: "sh", Args: []string{"sh", "-c", command}, Dir: dir,
		Env: append(env, proc.Tag(fmt.Sprintf("record-%d", os.Getpid()))), Size: pty.Size{Cols: cols, Rows: rows}})
	if err != nil {
		return nil, err
	}
	t := &terminal{PTY: p, patience: patience, output: before, last: time.Now()}
	go t.read()
	return t, nil
}

// read ends with the terminal.
func (t *terminal) read() {
	b := make([]byte, 64<<10)
	for {
		n, err := t.Read(b)
		t.mu.Lock()
		t.output = append(t.output, b[:n]...)
		if n > 0 {
			t.last = time.Now()
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// printed returns the output from an offset on, as bytes and as text, and since when
// there is no more.
func (t *terminal) printed(from int) (all []byte, text string, silent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.output, plain(t.output[from:]), time.Since(t.last)
}

// stop ends the program and returns all output.
func (t *terminal) stop() []byte {
	out, _, _ := t.printed(0)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	t.Kill(ctx, 2*time.Second) //nolint:errcheck // what is left is the person's to see
	t.Close()
	return out
}

// ended waits until the program has ended and its output was read.
func (t *terminal) ended() error {
	select {
	case <-t.Exited():
	case <-time.After(t.patience):
		_, text, _ := t.printed(0)
		return fmt.Errorf("it has not ended; printed was:\n%s", tail(text))
	}
	t.settle()
	return nil
}

// settle waits until nothing is printed for a while.
func (t *terminal) settle() {
	for begin := time.Now(); time.Since(begin) < maxLoud; time.Sleep(quiet / 5) {
		if _, _, silent := t.printed(0); silent > quiet {
			return
		}
	}
}

// await waits until all expressions are found in what is printed after an offset, while
// it asks for the URLs; without an expression, until they all answer with 200. It calls
// again while nothing is printed. The error has what was printed.
func (t *terminal) await(from int, urls []string, again func() error, all ...*regexp.Regexp) error {
	begin, pause, asked := time.Now(), quiet/2, time.Time{}
	saved := begin
	answered := 0
	for {
		if time.Since(asked) > pause {
			answered = 0
			for _, u := range urls {
				if get(u) == http.StatusOK {
					answered++
				}
			}
			asked, pause = time.Now(), min(2*pause, maxPause)
		}
		_, text, _ := t.printed(from)
		var missing []string
		for _, re := range all {
			if !re.MatchString(text) {
				missing = append(missing, re.String())
			}
		}
		if len(missing) == 0 && (len(all) > 0 || answered == len(urls)) {
			t.settle()
			return nil
		}
		if len(text) == 0 && time.Since(saved) > maxPause {
			if err := again(); err != nil {
				return err
			}
			saved = time.Now()
		}
		gone := false
		select {
		case <-t.Exited():
			gone = time.Since(begin) > maxPause
		case <-time.After(quiet / 5):
		}
		if gone || time.Since(begin) > t.patience {
			return fmt.Errorf("not printed: %q; %d of %d URLs answer; printed was:\n%s", missing, answered, len(urls), tail(text))
		}
	}
}

// tail is the end of a text.
func tail(text string) string { return text[max(0, len(text)-maxShown):] }

// get asks for a URL as a browser does, and returns the status, 0 for none.
func get(url string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	req.Header.Set("Accept", "text/html,*/*")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 16<<20)) //nolint:errcheck // the page does not matter
	return resp.StatusCode
}

// plain is the text of an output, in the order in which it was printed. A move to the
// right is a blank.
func plain(out []byte) string {
	var text strings.Builder
	var s escape.Scanner
	for _, c := range out {
		switch kind := s.Next(c); {
		case kind == escape.Text && c != '\r':
			text.WriteByte(c)
		case kind == escape.Control && c == 'C':
			text.WriteByte(' ')
		}
	}
	return text.String()
}
