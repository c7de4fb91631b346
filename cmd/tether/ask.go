package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ask asks a yes-or-no question. An answer that begins with y means yes, an empty one means otherwise, any other means no. The error at the
// end of input is io.EOF.
func (a *app) ask(ctx context.Context, question string, otherwise bool) (bool, error) {
	fmt.Fprintf(a.stderr, "%s %s ", question, map[bool]string{true: "[Y/n]", false: "[y/N]"}[otherwise])
	line, err := readLine(ctx, a.stdin)
	if err != nil {
		fmt.Fprintln(a.stderr)
		return false, err
	}
	answer := strings.TrimSpace(line)
	return otherwise && answer == "" || answer != "" && strings.EqualFold(answer[:1], "y"), nil
}

// maxTyped bounds a line that a person types or gives, in bytes.
const maxTyped = 4 << 10

// readLine reads one line and nothing after it: later input may be for a terminal that is attached next. The error at the end of input is
// io.EOF; a line of more than maxTyped bytes is one, too. If ctx ends first, a goroutine keeps reading in the background, so the program should end.
func readLine(ctx context.Context, f *os.File) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1) // 1: the reader ends even when nobody waits any more
	go func() {
		var line []byte
		for b := make([]byte, 1); ; line = append(line, b[0]) {
			n, _ := f.Read(b)
			switch {
			case n == 0 && len(line) == 0:
				read <- result{"", io.EOF}
				return
			case n == 0 || b[0] == '\n':
				read <- result{string(line), nil}
				return
			case len(line) == maxTyped:
				read <- result{"", errors.New("the line is longer than 4 KiB")}
				return
			}
		}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
