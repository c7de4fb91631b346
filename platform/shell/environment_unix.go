//go:build linux || darwin

package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"os/exec"
	"time"

	"tether/platform/proc"
)

// maxEnvironment bounds the bytes read of the shell's output. Linux allows at most 6 MiB
// of arguments and environment together (execve(2)).
const maxEnvironment = 6 << 20

// runLogin runs the shell without a terminal, in its own session, and returns its output.
// If ctx ends first, it ends the whole process tree. Otherwise background processes that
// the start-up files have started, such as ssh-agent, continue.
func runLogin(ctx context.Context, path string, args, env []string) ([]byte, error) {
	tag := proc.Tag("login-" + rand.Text())
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = "/", append(env, tag)
	proc.InSession(cmd)
	cmd.WaitDelay = time.Second // for background processes that keep the pipe open
	out := &limited{left: maxEnvironment}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	leader, err := proc.Lookup(cmd.Process.Pid)
	if err != nil {
		leader.Pid = cmd.Process.Pid // the shell has ended already
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		_ = proc.Tree{Leader: leader.ID, Tag: tag}.Kill(context.Background(), 0)
	})
	err = cmd.Wait()
	if !stop() {
		<-killed
	}
	return out.kept.Bytes(), err
}

// limited keeps the beginning of the bytes written to it. It does not embed the buffer:
// io.Copy would use the buffer's ReadFrom, which has no limit.
type limited struct {
	kept bytes.Buffer
	left int // bytes that still fit
}

func (l *limited) Write(p []byte) (int, error) {
	n, _ := l.kept.Write(p[:min(len(p), l.left)])
	l.left -= n
	return len(p), nil
}
