package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"tether/platform/secret"
)

// lookAtLog is the time between two checks of a followed log.
const lookAtLog = 200 * time.Millisecond

// tail prints the last lines of a file. With follow it goes on with appended lines until ctx ends; if the file is renamed and a new one is
// begun under its name, it goes on with the new one. A missing file is no error.
func tail(ctx context.Context, w io.Writer, name string, lines int, follow bool) error {
	f, err := secret.OpenRead(name) // so that it can be rotated meanwhile
	if err == nil {
		err = lastLines(w, f, lines)
	}
	if errors.Is(err, fs.ErrNotExist) && follow {
		err = nil
	}
	for follow && err == nil {
		select {
		case <-ctx.Done():
			return closed(f)
		case <-time.After(lookAtLog):
		}
		f, err = more(w, f, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, closed(f))
}

func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// lastLines reads the last lines of f and leaves f at its end. It keeps only those lines in memory.
func lastLines(w io.Writer, f *os.File, lines int) error {
	ring := make([]string, 0, lines)
	r := bufio.NewReader(f)
	for n := 0; ; n++ {
		line, err := r.ReadString('\n')
		switch {
		case line == "":
		case len(ring) < lines:
			ring = append(ring, line)
		default:
			ring[n%lines] = line
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the log: %w", err)
		}
		if err == nil {
			continue
		}
		if line == "" {
			n--
		}
		for i := range ring {
			if _, err := io.WriteString(w, ring[(n+1+i)%len(ring)]); err != nil {
				return err
			}
		}
		return nil
	}
}

// more prints new text, and switches to a file that has taken f's name.
func more(w io.Writer, f *os.File, name string) (*os.File, error) {
	if f != nil {
		if _, err := io.Copy(w, f); err != nil {
			return f, err
		}
	}
	now, err := os.Stat(name)
	if err != nil {
		return f, nil // the new file is about to be created
	}
	if f != nil {
		if then, err := f.Stat(); err != nil || os.SameFile(then, now) {
			return f, err
		}
	}
	next, err := secret.OpenRead(name)
	if err != nil {
		return f, nil
	}
	return next, errors.Join(closed(f))
}
