package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tether/platform/proc"
)

// usage is the CPU time of daemon and host since their start.
type usage struct{ daemon, host time.Duration }

func (r *rig) usage() (usage, error) {
	daemon, err := cpuTime(r.daemon.Process.Pid)
	if err != nil {
		return usage{}, err
	}
	host, err := cpuTime(r.server.Process.Pid)
	return usage{daemon, host}, err
}

// cpuTime returns the CPU time of a process's current threads; a Go program ends hardly
// any thread. The source is /proc/PID/task/TID/schedstat, which counts nanoseconds;
// /proc/PID/stat counts ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("CPU time of process %d: this system does not tell it", pid)
	}
	var sum time.Duration
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that has just ended
		}
		first, _, _ := bytes.Cut(data, []byte{' '})
		ns, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// memory is the memory of a process.
type memory struct {
	rss, peak int64 // bytes
	threads   int64
}

// memoryOf reads /proc/PID/status.
func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	return parseStatus(string(data))
}

func parseStatus(status string) (memory, error) {
	var m memory
	fields := map[string]*int64{"VmRSS:": &m.rss, "VmHWM:": &m.peak, "Threads:": &m.threads}
	for line := range strings.Lines(status) {
		words := strings.Fields(line)
		if len(words) < 2 || fields[words[0]] == nil {
			continue
		}
		n, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return m, fmt.Errorf("%s %w", words[0], err)
		}
		if len(words) == 3 && words[2] == "kB" {
			n <<= 10
		}
		*fields[words[0]] = n
	}
	if m.rss == 0 || m.threads == 0 {
		return m, fmt.Errorf("no VmRSS or Threads in %.40q", status)
	}
	return m, nil
}

// holderMemory returns the mean memory of the daemon's holders, in MB. It counts all
// child processes of the daemon as holders.
func (r *rig) holderMemory() (rss, pss float64, err error) {
	all, err := proc.List()
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for _, p := range all {
		if p.Parent != r.daemon.Process.Pid {
			continue
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.Pid))
		if err != nil {
			return 0, 0, fmt.Errorf("memory of a holder: this system does not tell it: %w", err)
		}
		n++
		rss += rollup(string(data), "Rss:")
		pss += rollup(string(data), "Pss:")
	}
	if n == 0 {
		return 0, 0, errors.New("the daemon has no holders")
	}
	return rss / float64(n), pss / float64(n), nil
}

// rollup returns the value called name in the text of smaps_rollup, in MB; 0 if it is
// missing.
func rollup(text, name string) float64 {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == name {
			kb, _ := strconv.ParseFloat(words[1], 64)
			return kb * 1024 / 1e6
		}
	}
	return 0
}
