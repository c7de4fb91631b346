package jsonrpc

// Message is the result of split, for the fuzz test.
type Message struct{ Version, ID, Method, Params, Result, Err []byte }

// Split is split.
func Split(data []byte) (Message, error) {
	m, err := split(data, 0)
	return Message{m.version, m.id, m.method, m.params, m.result, m.err}, err
}
