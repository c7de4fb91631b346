package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLsof bounds the bytes read of lsof's output: some ten thousand sockets.
const maxLsof = 1 << 20

// lsofWithin bounds lsof, which may wait for a file system that has gone away.
const lsofWithin = 5 * time.Second

// sockets asks lsof for listening sockets.
func sockets() ([]Listener, error) {
	out, err := lsof(lsofArgs(os.Getuid())...)
	if err != nil {
		return nil, fmt.Errorf("list listening sockets with lsof: %w", err)
	}
	return parseLsof(out), nil
}

func directories(pids []int) map[int]string {
	var numbers []string
	for _, pid := range pids {
		numbers = append(numbers, strconv.Itoa(pid))
	}
	out, err := lsof("-d", "cwd", "-p", strings.Join(numbers, ","))
	if err != nil {
		return nil
	}
	return parseLsofDirs(out)
}

// lsof returns the output of lsof for these conditions. Every macOS has it; the system
// calls for it are no public interface.
func lsof(conditions ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lsofWithin)
	defer cancel()
	c := exec.CommandContext(ctx, "/usr/sbin/lsof", slices.Concat(lsofFormat, conditions)...)
	c.WaitDelay = time.Second
	out := &atMost{left: maxLsof}
	c.Stdout = out
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 && ctx.Err() == nil {
		err = nil // it has found nothing, or not everything
	}
	return out.kept.Bytes(), err
}

// atMost keeps the beginning of the written bytes, and accepts and drops the rest. It
// does not embed the buffer: io.Copy would use the buffer's ReadFrom, which has no limit.
type atMost struct {
	kept bytes.Buffer
	left int // bytes that still fit
}

// Write implements io.Writer.
func (b *atMost) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.left -= len(kept)
	b.kept.Write(kept)
	return len(p), nil
}
