// Package browser opens a page in the person's web browser.
//
//	err := browser.Open("http://127.0.0.1:9187/")
package browser

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// ErrNone is returned by Open if there is no desktop that could show a page.
var ErrNone = errors.New("no desktop to open a browser on")

// Open asks the desktop to show an http or https URL. It returns when it has started the
// desktop's program for that, which may be before anything is shown. While that program
// runs, the URL is on its command line, where other users may see it.
func Open(url string) error {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return fmt.Errorf("%q is not the URL of a web page", url)
	}
	argv := command()
	if len(argv) == 0 {
		return ErrNone
	}
	c := exec.Command(argv[0], append(argv[1:], url)...)
	if err := c.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = c.Wait() }() // some openers stay as long as the browser does
	return nil
}
