package proc

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ForgetImage makes the system forget which pages of this program's file are mapped for
// it; code that runs next is mapped again, from the system's cache. Most of a program is
// needed only at its start, and Linux maps the pages around each page that is touched, so
// an idle daemon seems three times as large as it is.
//
// It blocks for a few ms at most and is safe while other goroutines run: these pages are
// not written. A page that was written, by a debugger for example, stays.
func ForgetImage() error {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	all, err := mappings(name)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.changed || m.writable {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}

// mapping is a part of a file in this process's memory.
type mapping struct {
	start, end uintptr
	resident   int64 // KiB of it that are mapped
	writable   bool
	changed    bool // some pages are no longer the file's
}

// mappings are the mappings of the file name.
func mappings(name string) ([]mapping, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []mapping
	ours := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) >= 5 && strings.Contains(words[0], "-") {
			m, err := parseMapping(words)
			if err != nil {
				return nil, err
			}
			// A name with spaces is not found, and stays mapped.
			if ours = len(words) == 6 && words[5] == name; ours {
				all = append(all, m)
			}
		}
		if !ours || len(words) != 3 {
			continue
		}
		last := &all[len(all)-1]
		n, _ := strconv.ParseInt(words[1], 10, 64)
		switch words[0] {
		case "Rss:":
			last.resident = n
		case "Anonymous:":
			last.changed = n != 0
		}
	}
	return all, lines.Err()
}

// parseMapping reads the first line of a mapping: its range and its permissions.
func parseMapping(words []string) (m mapping, err error) {
	from, to, _ := strings.Cut(words[0], "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return m, fmt.Errorf("memory map: %w", err)
	}
	end, err := strconv.ParseUint(to, 16, 64)
	if err != nil {
		return m, fmt.Errorf("memory map: %w", err)
	}
	m.start, m.end, m.writable = uintptr(start), uintptr(end), strings.Contains(words[1], "w")
	return m, nil
}
