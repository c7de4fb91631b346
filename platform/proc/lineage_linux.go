package proc

import (
	"bytes"
	"strings"
)

func lineageLook() func(int) (Info, error) { return lookup }

func lineageMarks() func(int) (terminals, agents []string) { return marksOf }

// marksOf returns the values of TagVar and AgentVar in the environment of a process.
func marksOf(pid int) (terminals, agents []string) {
	env, err := environ(pid)
	if err != nil {
		return nil, nil
	}
	for len(env) > 0 {
		var e []byte
		e, env, _ = bytes.Cut(env, []byte{0})
		if id, ok := bytes.CutPrefix(e, []byte(TagVar+"=")); ok {
			terminals = append(terminals, string(id))
		} else if name, ok := bytes.CutPrefix(e, []byte(AgentVar+"=")); ok && len(name) > 0 {
			agents = append(agents, string(name))
		}
	}
	return terminals, agents
}

// maxArgv bounds the bytes read of a process's arguments: the ones that identify a program come first.
const maxArgv = 4 << 10

func argvOf(pid int) []string {
	var buf [maxArgv]byte
	line, err := readStart(procFile(pid, "cmdline"), buf[:])
	if err != nil || len(line) == 0 { // a zombie, or a thread of the kernel
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}
