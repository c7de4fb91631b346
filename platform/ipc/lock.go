//go:build linux || darwin || windows

package ipc

import (
	"bytes"
	"os"
	"strconv"
)

// writePid says in the file of a lock who holds it.
func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPid reads that, 0 if it is not there yet.
func readPid(f *os.File) int {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0) // at the end of the file with io.EOF
	pid, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
