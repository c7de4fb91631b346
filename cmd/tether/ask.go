package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// ask puts a question to which y is yes, nothing is what otherwise says, and all else is no. The error at the end of input is io.EOF.
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

// readLine reads up to the end of a line and not beyond: what follows may be for the terminal that is about to be attached. The error at
// the end of input is io.EOF. When ctx ends first the reading goes on in the background, so the program should end.
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
