package tty

import "os"

// Person opens this process's console, wherever its standard files lead, to ask a person.
// ok is false if there is none. The caller closes both files.
func Person() (in, out *os.File, ok bool) {
	keys, err := openConsole("CONIN$")
	if err != nil {
		return nil, nil, false
	}
	in = os.NewFile(uintptr(keys), "CONIN$")
	screen, err := openConsole("CONOUT$")
	if err != nil {
		in.Close()
		return nil, nil, false
	}
	return in, os.NewFile(uintptr(screen), "CONOUT$"), true
}
