package proc

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	ntdll                  = windows.NewLazySystemDLL("ntdll.dll")
	ntOpenDirectoryObject  = ntdll.NewProc("NtOpenDirectoryObject")
	ntQueryDirectoryObject = ntdll.NewProc("NtQueryDirectoryObject")
)

const (
	directoryQuery = 1       // DIRECTORY_QUERY of <wdm.h>
	namesAtOnce    = 4 << 10 // entries of 32 bytes and their texts, in words of 8 bytes
)

// nameEntry is OBJECT_DIRECTORY_INFORMATION.
type nameEntry struct{ name, kind windows.NTUnicodeString }

// agentJobs returns the agents of this user whose jobs have a name now.
func agentJobs() ([]string, error) {
	prefix, err := agentJobPrefix()
	if err != nil {
		return nil, err
	}
	dir, err := namedObjects()
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(dir)
	var all []string
	buf := make([]uint64, namesAtOnce) // holds pointers into itself, not Go pointers
	context, restart, more := uint32(0), uintptr(1), true
	for more {
		clear(buf)
		status, _, _ := ntQueryDirectoryObject.Call(uintptr(dir), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))*8, 0, restart,
			uintptr(unsafe.Pointer(&context)), 0)
		switch windows.NTStatus(status) {
		case windows.STATUS_SUCCESS:
			more = false
		case windows.STATUS_MORE_ENTRIES:
		case windows.STATUS_NO_MORE_ENTRIES:
			return all, nil
		default:
			return all, fmt.Errorf("list named objects: %w", windows.NTStatus(status))
		}
		for at := unsafe.Pointer(&buf[0]); (*nameEntry)(at).name.Buffer != nil; at = unsafe.Add(at, unsafe.Sizeof(nameEntry{})) {
			rest, ok := strings.CutPrefix((*nameEntry)(at).name.String(), prefix)
			if principal, err := hex.DecodeString(rest); ok && err == nil {
				all = append(all, string(principal))
			}
		}
		restart = 0
	}
	return all, nil
}

// namedObjects opens the directory in which names that begin with Local\ are.
func namedObjects() (windows.Handle, error) {
	var session uint32
	if err := windows.ProcessIdToSessionId(uint32(os.Getpid()), &session); err != nil {
		return 0, fmt.Errorf("session of this process: %w", err)
	}
	path := `\BaseNamedObjects`
	if session != 0 {
		path = fmt.Sprintf(`\Sessions\%d\BaseNamedObjects`, session)
	}
	name, err := windows.NewNTUnicodeString(path)
	if err != nil {
		return 0, err
	}
	attributes := windows.OBJECT_ATTRIBUTES{ObjectName: name}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	var dir windows.Handle
	status, _, _ := ntOpenDirectoryObject.Call(uintptr(unsafe.Pointer(&dir)), directoryQuery, uintptr(unsafe.Pointer(&attributes)))
	if status != 0 {
		return 0, fmt.Errorf("open %s: %w", path, windows.NTStatus(status))
	}
	return dir, nil
}
