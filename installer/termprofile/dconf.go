package termprofile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// dconfTimeout bounds a call of dconf, which waits for the session's bus.
const dconfTimeout = 10 * time.Second

func dconf(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dconfTimeout)
	defer cancel()
	var failed bytes.Buffer
	c := exec.CommandContext(ctx, "dconf", args...)
	c.Stdin, c.Stderr, c.WaitDelay = bytes.NewReader(in), &failed, time.Second
	out, err := c.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the program dconf is not installed")
	}
	if err != nil {
		return nil, fmt.Errorf("dconf %s: %w: %s", args[0], err, strings.TrimSpace(failed.String()))
	}
	return out, nil
}

// DconfText returns the text of a directory of dconf.
func DconfText(ctx context.Context, dir string) ([]byte, error) {
	return dconf(ctx, nil, "dump", dir)
}

// WriteDconf makes the text of a directory after, where it was before: it writes what
// after has, and resets keys that it lacks.
func WriteDconf(ctx context.Context, dir string, before, after []byte) error {
	if len(after) > 0 {
		if _, err := dconf(ctx, after, "load", dir); err != nil {
			return err
		}
	}
	for _, key := range lost(readINI(before), readINI(after)) {
		if _, err := dconf(ctx, nil, "reset", dir+key); err != nil {
			return err
		}
	}
	return nil
}

// lost returns the keys of before that after lacks, relative to the directory.
func lost(before, after ini) (keys []string) {
	section := ""
	for _, line := range before {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		key, _, ok := strings.Cut(line, "=")
		if at, _ := after.find(section, key); !ok || at >= 0 {
			continue
		}
		if section != "/" {
			key = section + "/" + key
		}
		keys = append(keys, key)
	}
	return keys
}
