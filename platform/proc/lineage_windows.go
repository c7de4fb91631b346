package proc

import (
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// lineageLook reads the table once: only it has the parents.
func lineageLook() func(int) (Info, error) {
	all := map[int]Info{}
	_, err := scan(func(p Info) { all[p.Pid] = p })
	return func(pid int) (Info, error) {
		p, ok := all[pid]
		if err == nil && !ok {
			return Info{}, windows.ERROR_NOT_FOUND
		}
		return p, err
	}
}

// lineageMarks looks up once which processes are in which agent's job.
func lineageMarks() func(int) Marks {
	members := map[int][]string{}
	principals, _ := agentJobs() // results found before an error count
	for _, principal := range principals {
		pids, _ := AgentMembers(principal) // none if it cannot be asked
		for _, pid := range pids {
			members[pid] = append(members[pid], principal)
		}
	}
	return func(pid int) Marks { return Marks{Agents: members[pid]} }
}

// argvOf returns the arguments of a process, with its program's file as the first, or
// that alone if the arguments cannot be read.
func argvOf(pid int) []string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(h)
	image := imageOf(h)
	if image == "" {
		return nil
	}
	argv := []string{image}
	if given, err := windows.DecomposeCommandLine(commandLine(h)); err == nil && len(given) > 1 {
		argv = append(argv, given[1:]...)
	}
	return argv
}

func exeOf(pid int) string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	return imageOf(h)
}

// imageOf returns the file that a process runs, "" if that cannot be read.
func imageOf(process windows.Handle) string {
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name))
	if err := windows.QueryFullProcessImageName(process, 0, &name[0], &size); err != nil {
		return ""
	}
	return windows.UTF16ToString(name[:size])
}

// commandLine returns the command line of a process, "" if it cannot be read. A command
// line has at most 32,767 characters.
func commandLine(process windows.Handle) string {
	buf := make([]uint64, (64<<10+64)/8) // holds a UNICODE_STRING, which points to the characters behind it
	err := windows.NtQueryInformationProcess(process, windows.ProcessCommandLineInformation, unsafe.Pointer(&buf[0]), uint32(len(buf)*8), nil)
	if err != nil {
		return ""
	}
	return (*windows.NTUnicodeString)(unsafe.Pointer(&buf[0])).String()
}

func directories(pids []int) map[int]string {
	all := map[int]string{}
	for _, pid := range pids {
		h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.PROCESS_VM_READ, false, uint32(pid))
		if err != nil {
			continue
		}
		if dir := directoryIn(h); dir != "" {
			all[pid] = dir
		}
		windows.CloseHandle(h)
	}
	return all
}

// directoryIn reads a process's working directory from its memory, "" if it cannot, such
// as that of a process of 32 bits. Addresses are numbers here, as they are those of
// another process.
func directoryIn(h windows.Handle) string {
	read := func(from uintptr, into unsafe.Pointer, size uintptr) bool {
		var n uintptr
		return from != 0 && windows.ReadProcessMemory(h, from, (*byte)(into), size, &n) == nil && n == size
	}
	var basic [unsafe.Sizeof(windows.PROCESS_BASIC_INFORMATION{}) / unsafe.Sizeof(uintptr(0))]uintptr
	const peb = unsafe.Offsetof(windows.PROCESS_BASIC_INFORMATION{}.PebBaseAddress) / unsafe.Sizeof(uintptr(0))
	var parameters uintptr
	var path struct {
		length, room uint16
		buffer       uintptr
	}
	const at = unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.CurrentDirectory)
	if windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation, unsafe.Pointer(&basic), uint32(unsafe.Sizeof(basic)), nil) != nil || basic[peb] == 0 ||
		!read(basic[peb]+unsafe.Offsetof(windows.PEB{}.ProcessParameters), unsafe.Pointer(&parameters), unsafe.Sizeof(parameters)) || parameters == 0 ||
		!read(parameters+at, unsafe.Pointer(&path), unsafe.Sizeof(path)) || path.length < 2 {
		return ""
	}
	text := make([]uint16, path.length/2)
	if !read(path.buffer, unsafe.Pointer(&text[0]), uintptr(len(text)*2)) {
		return ""
	}
	return filepath.Clean(windows.UTF16ToString(text))
}

// Privileged reports false: it is asked where processes have controlling terminals.
func Privileged(Ancestor) bool { return false }
