package adopt

import "io"

// Read runs a reader in this process until the pane ends or out fails.
func Read(p Pane, nonce string, typed bool, in io.Reader, out io.Writer) int {
	r := &reader{socket: p.Socket, pane: p.Target.Pane, pid: p.Pid, server: p.Server, typed: typed, nonce: nonce, in: in, out: out}
	if typed {
		go r.keys()
	}
	return r.run()
}
