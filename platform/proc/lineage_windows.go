package proc

import (
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
func lineageMarks() func(int) (terminals, agents []string) {
	members := map[int][]string{}
	principals, _ := agentJobs() // results found before an error count
	for _, principal := range principals {
		pids, _ := AgentMembers(principal) // none if it cannot be asked
		for _, pid := range pids {
			members[pid] = append(members[pid], principal)
		}
	}
	return func(pid int) (terminals, agents []string) { return nil, members[pid] }
}

// argvOf is the program alone: Windows shows nobody the arguments of another process.
func argvOf(pid int) []string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(h)
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name))
	if err := windows.QueryFullProcessImageName(h, 0, &name[0], &size); err != nil {
		return nil
	}
	return []string{windows.UTF16ToString(name[:size])}
}
