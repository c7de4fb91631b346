package pty

import (
	"errors"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

var setConsoleCtrlHandler = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetConsoleCtrlHandler")

// spawn starts the program on p's console and in p's job, from its first instruction on.
func (p *PTY) spawn(c Command, path, line string) (windows.Handle, error) {
	application := path
	if isBatch(path) {
		system, err := windows.GetSystemDirectory()
		if err != nil {
			return 0, &StartError{What: "program", Name: path, Err: err}
		}
		application = filepath.Join(system, "cmd.exe")
	}
	application, line, err := onConsole(application, line)
	if err != nil {
		return 0, &StartError{What: "program", Name: path, Err: explain(err)}
	}
	list, err := p.attributes()
	if err != nil {
		return 0, &StartError{What: "terminal", Err: err}
	}
	defer list.Delete()
	info := windows.StartupInfoEx{ProcThreadAttributeList: list.List()}
	info.Cb = uint32(unsafe.Sizeof(info))
	// No standard handles, and explicitly so: otherwise the program would get this
	// process's handles, if they are redirected (microsoft/terminal #4585). The console
	// then gives its own.
	info.Flags = windows.STARTF_USESTDHANDLES
	process, err := create(application, line, c.Dir, c.Env, &info)
	if err != nil {
		return 0, &StartError{What: "program", Name: path, Err: explain(err)}
	}
	_ = windows.CloseHandle(process.Thread)
	p.pid = int(process.ProcessId)
	return process.Process, nil
}

// attributes are CreateProcess's extended attributes: the console and the jobs, the outer
// one first.
func (p *PTY) attributes() (*windows.ProcThreadAttributeListContainer, error) {
	list, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return nil, err
	}
	var jobs []windows.Handle
	if p.agent != nil {
		jobs = append(jobs, p.agent.Handle())
	}
	jobs = append(jobs, p.job.Handle())
	err = p.console.attribute(list)
	if err == nil {
		err = list.Update(attributeJobList, unsafe.Pointer(&jobs[0]), uintptr(len(jobs))*unsafe.Sizeof(jobs[0]))
	}
	if err != nil {
		list.Delete()
		return nil, err
	}
	return list, nil
}

// attributeJobList is PROC_THREAD_ATTRIBUTE_JOB_LIST of <WinBase.h>: since Windows 10.
const attributeJobList = 0x0002000d

// create is CreateProcess. It makes no new process group: in one, Ctrl+C does nothing
// (MicrosoftDocs/Console-Docs #348). Ctrl+C also does nothing if this process was started
// to ignore it, which children inherit, so create undoes that.
func create(application, line, dir string, env []string, info *windows.StartupInfoEx) (*windows.ProcessInformation, error) {
	app, err := windows.UTF16PtrFromString(application)
	if err != nil {
		return nil, err
	}
	text, err := windows.UTF16FromString(line)
	if err != nil {
		return nil, err
	}
	var in *uint16
	if dir != "" {
		if in, err = windows.UTF16PtrFromString(dir); err != nil {
			return nil, err
		}
	}
	_, _, _ = setConsoleCtrlHandler.Call(0, 0)       // without a console there is nothing to undo
	root, err := windows.GetSystemWindowsDirectory() // this process may have no SystemRoot itself
	if err != nil {
		return nil, err
	}
	block := envBlock(foldEnv(env, root))
	process := new(windows.ProcessInformation)
	err = windows.CreateProcess(app, &text[0], nil, nil, false,
		windows.CREATE_UNICODE_ENVIRONMENT|windows.EXTENDED_STARTUPINFO_PRESENT, &block[0], in, &info.StartupInfo, process)
	return process, err
}

// envBlock returns the environment in the form that CreateProcess takes.
func envBlock(env []string) []uint16 {
	if len(env) == 0 {
		return []uint16{0, 0}
	}
	var block []uint16
	for _, e := range env {
		units, err := windows.UTF16FromString(e) // keeps half of a surrogate pair, unlike package utf16
		if err == nil {                          // foldEnv leaves out entries with a NUL byte
			block = append(block, units...)
		}
	}
	return append(block, 0)
}

// explain translates Windows' error for a file that is not a program.
func explain(err error) error {
	if errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) {
		return errors.New("not a Windows program; give the program that runs this file")
	}
	return err
}
