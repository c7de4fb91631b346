package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"tether/platform/secret"
)

// A list of paired hosts that cannot be read must not keep local terminals from anybody: the daemon starts, lends to nobody, and keeps the
// file aside as it is. It may hold tokens that the person wants back.

// hostsCause is the cause in status while there is such a file.
const hostsCause = "paired hosts"

// mostAside is how many of them are kept; no more are put aside.
const mostAside = 9

// openHosts reads the paired hosts. One that is damaged is put aside; one that others may read or that is a link is an error, and so is one
// of another release, which is whole.
func (a *Agent) openHosts() (err error) {
	path := hostsPath(a.cfg.Dirs)
	a.hosts, err = openHosts(path, a.cfg.Secrets)
	if damaged, ok := errors.AsType[*secret.DamagedError](err); ok {
		aside, failed := putAside(path)
		if failed != nil {
			return fmt.Errorf("%w; it cannot be put aside: %w", err, failed)
		}
		a.log.Error().Err(damaged.Err).Str("kept", aside).Msg("the list of paired hosts is damaged")
		a.hosts, err = openHosts(path, a.cfg.Secrets)
	}
	a.reportAside()
	return err
}

// putAside renames a file to a name that is free, and returns that.
func putAside(path string) (string, error) {
	for n := 1; n <= mostAside; n++ {
		aside := asideName(path, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(path, aside)
		}
	}
	return "", fmt.Errorf("%s to %s are there already: repair or remove them", asideName(path, 1), asideName(path, mostAside))
}

func asideName(path string, n int) string { return fmt.Sprintf("%s.damaged-%d", path, n) }

// reportAside says in status what was put aside, until the person has removed it.
func (a *Agent) reportAside() {
	path := hostsPath(a.cfg.Dirs)
	var kept []string
	for n := 1; n <= mostAside; n++ {
		if _, err := os.Lstat(asideName(path, n)); err == nil {
			kept = append(kept, asideName(path, n))
		}
	}
	text := ""
	if len(kept) > 0 {
		text = fmt.Sprintf("the list was damaged and is kept as %s; nothing is lent to the hosts in it. Pair with them again, or stop the daemon, repair the file and name it %s; then remove it",
			strings.Join(kept, ", "), path)
	}
	a.degraded.report(hostsCause, text)
}
