package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine describes the machine on which the values depend.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel,omitempty"`
	Go     string `json:"go"`
	Load   string `json:"load,omitempty"` // load average of the minute before the run: other work on the machine falsifies the values
}

func (m machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s", m.CPU, m.Cores, m.Go)
	if m.Kernel != "" {
		s += ", Linux " + m.Kernel
	}
	if m.Load != "" {
		s += ", load " + m.Load + " at the start"
	}
	return s
}

func thisMachine() machine {
	m := machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), Go: runtime.Version()}
	info, _ := os.ReadFile("/proc/cpuinfo") // missing on other systems: the CPU stays unknown
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	m.Kernel = firstWord("/proc/sys/kernel/osrelease")
	m.Load = firstWord("/proc/loadavg")
	return m
}

// firstWord is "" if the file cannot be read.
func firstWord(name string) string {
	data, _ := os.ReadFile(name)
	word, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return word
}
