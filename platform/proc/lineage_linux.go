package proc

import "bytes"

// terminalsOf returns the values of TagVar in the environment of a process.
func terminalsOf(pid int) []string {
	env, err := environ(pid)
	if err != nil {
		return nil
	}
	var all []string
	for len(env) > 0 {
		var e []byte
		e, env, _ = bytes.Cut(env, []byte{0})
		if id, ok := bytes.CutPrefix(e, []byte(TagVar+"=")); ok {
			all = append(all, string(id))
		}
	}
	return all
}
