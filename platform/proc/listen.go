package proc

// Listens reports whether a process that was started with this entry in its environment, see Tag, listens on a TCP port. It returns
// ErrUnsupported where sockets cannot be led back to processes yet: macOS and Windows.
func Listens(tag string, port int) (bool, error) { return listens(tag, port) }
