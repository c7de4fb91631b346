package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tether/internal/retry"
)

// Start starts a program that ends when ctx ends, or when this process does. It returns
// the program's output on both streams, which ends with the program.
type Start func(ctx context.Context, program string, args []string) (io.ReadCloser, error)

// Events are told by Run, one at a time. They must not block for long.
type Events struct {
	// Up is called when the way is open at a URL, also if the URL is the former one.
	Up func(url string)
	// Down is called when the way has closed, and will be opened again after the pause.
	Down func(why string, pause time.Duration)
	// Says passes on a line of the program.
	Says func(line string)
}

const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// steady is how long a way must have been open for its next pause to be a short one
	// again.
	steady  = time.Minute
	maxLine = 4 << 10 // bytes of a program's line that are looked at
)

// Run keeps the way to the port open until ctx ends. If the way closes, Run opens it
// again. Errors: ctx's, or why the way could not be opened the first time.
func (w Way) Run(ctx context.Context, port int, start Start, on Events) error {
	remote, pause := 0, firstPause
	for first := true; ; first = false {
		began := time.Now()
		url, again, why := w.once(ctx, port, remote, start, on)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case url == "" && first:
			return fmt.Errorf("%s: %s", w.Program, why)
		case url != "" && time.Since(began) >= steady:
			pause = firstPause
		}
		if again != 0 {
			remote = again
		}
		on.Down(why, pause)
		if !retry.Wait(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, lastPause)
	}
}

// once runs the program once. url is "" if the way was not open.
func (w Way) once(ctx context.Context, port, remote int, start Start, on Events) (url string, again int, why string) {
	out, err := start(ctx, w.Program, w.args(port, remote))
	if err != nil {
		return "", 0, err.Error()
	}
	defer out.Close()
	why = "it has ended"
	lines := bufio.NewReaderSize(out, maxLine)
	for {
		text, more, err := lines.ReadLine()
		if err != nil {
			return url, again, why
		}
		for more && err == nil { // only the beginning of a long line counts
			_, more, err = lines.ReadLine()
		}
		line := strings.TrimSpace(string(text))
		if found := w.ready.FindStringSubmatch(line); found != nil && url == "" {
			url, again = w.at(found[1])
			on.Up(url)
			continue
		}
		if line == "" || w.noise != nil && w.noise.MatchString(line) {
			continue
		}
		why = line
		if url == "" && w.loud.MatchString(line) {
			on.Says(line)
		}
	}
}

// ErrSilent is the error of RunWithin for a way that did not open in time.
var ErrSilent = errors.New("it did not open in time")

// RunWithin is Run for a way that must open within a time the first time.
func (w Way) RunWithin(ctx context.Context, within time.Duration, port int, start Start, on Events) error {
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(within, func() { cancel(fmt.Errorf("%s: %w", w.Program, ErrSilent)) })
	defer late.Stop()
	up := on.Up
	on.Up = func(url string) {
		late.Stop()
		up(url)
	}
	err := w.Run(opening, port, start, on)
	if ctx.Err() == nil && opening.Err() != nil {
		return context.Cause(opening)
	}
	return err
}
