package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tether/internal/retry"
	"tether/internal/rotated"
	"tether/platform/secret"
)

// lookAtLog is the time between two checks of a followed log.
const lookAtLog = 200 * time.Millisecond

// maxLines bounds the number of last lines that a command prints.
const maxLines = 1 << 20

// checkRange returns an error of the command line if a flag's number is out of range.
func checkRange(c *cobra.Command, flag string, n, least, most int64) error {
	switch {
	case n < least:
		return usage(c, "%s %d must be at least %d", flag, n, least)
	case n > most:
		return usage(c, "%s %d must be at most %d", flag, n, most)
	}
	return nil
}

// tail prints the last lines of a file. With follow it goes on with what is added to the
// log until ctx ends. A missing file is no error.
func tail(ctx context.Context, w io.Writer, name string, lines int, follow bool) error {
	f, err := secret.OpenRead(name) // so that it can be rotated meanwhile
	switch {
	case errors.Is(err, fs.ErrNotExist) && !follow:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		f = nil
	case err != nil:
		return err
	}
	log := rotated.New(name, f)
	defer log.Close()
	if f != nil {
		if err := toLastLines(f, lines); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if _, err := io.Copy(w, f); err != nil || !follow {
			return err
		}
	}
	for {
		err := log.Next(func(added io.Reader, _ bool) error {
			_, err := io.Copy(w, added)
			return err
		})
		if err != nil {
			return err
		}
		if !retry.Wait(ctx, lookAtLog) {
			return nil
		}
	}
}

// toLastLines moves f to the beginning of its last lines. It reads from the end on, a
// piece at a time.
func toLastLines(f *os.File, lines int) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	piece := make([]byte, 32<<10)
	for at := end; at > 0; {
		n := min(at, int64(len(piece)))
		at -= n
		if _, err := f.ReadAt(piece[:n], at); err != nil {
			return err
		}
		for i := n - 1; i >= 0; i-- {
			if piece[i] != '\n' || at+i == end-1 { // the last line ends there
				continue
			}
			if lines--; lines == 0 {
				_, err := f.Seek(at+i+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
