package proc

import (
	"bytes"
	"strings"
)

func lineageLook() func(int) (Info, error) { return lookup }

func lineageMarks() func(int) Marks { return marksOf }

// marksOf returns the marks in the environment of a process.
func marksOf(pid int) (found Marks) {
	var buf [usualEnviron]byte
	env, err := environ(pid, buf[:])
	if err != nil {
		return found
	}
	for len(env) > 0 {
		var e []byte
		e, env, _ = bytes.Cut(env, []byte{0})
		if id, ok := bytes.CutPrefix(e, []byte(TagVar+"=")); ok {
			found.Terminals = append(found.Terminals, string(id))
		} else if name, ok := bytes.CutPrefix(e, []byte(AgentVar+"=")); ok && len(name) > 0 {
			found.Agents = append(found.Agents, string(name))
		} else if socket, ok := bytes.CutPrefix(e, []byte("TMUX=")); ok {
			found.Tmux = string(socket)
		} else if pane, ok := bytes.CutPrefix(e, []byte("TMUX_PANE=")); ok {
			found.Pane = string(pane)
		} else if _, value, _ := bytes.Cut(e, []byte{'='}); len(value) > 0 && vendorMark(string(e)) {
			found.Vendors = append(found.Vendors, string(e))
		}
	}
	return found
}

// Bounds of the bytes read of a process's arguments: most are short, but the class that
// tells which program a Java machine runs stands behind its class path.
const (
	usualArgv = 4 << 10
	maxArgv   = 128 << 10
)

func argvOf(pid int) []string {
	var buf [usualArgv]byte
	line, err := readStart(procFile(pid, "cmdline"), buf[:])
	if err == nil && len(line) == usualArgv {
		line, err = readStart(procFile(pid, "cmdline"), make([]byte, maxArgv))
	}
	if err != nil || len(line) == 0 { // a zombie, or a thread of the kernel
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}
