package acp

// Plain returns the plain text of the pieces: the finished lines, and the unfinished last
// line.
func Plain(pieces ...string) (lines, last string) {
	o := newOutput(nil, false)
	for _, p := range pieces {
		o.write([]byte(p))
	}
	a, b := o.log.Slices(o.log.Start(), int(o.log.End()))
	return string(a) + string(b), string(o.last())
}

// Output returns the output of terminal/output after the pieces, as a JSON string.
func Output(limit *uint64, ansi bool, pieces ...string) (quoted string, truncated bool) {
	o := newOutput(limit, ansi)
	for _, p := range pieces {
		o.write([]byte(p))
	}
	return string(o.snapshot()), o.truncated()
}

// Commands lists the possible meanings of a terminal/create in a directory.
func Commands(params, cwd string) ([]Command, error) {
	p, err := decodeCreate([]byte(params))
	if err != nil {
		return nil, err
	}
	return p.commands(cwd), nil
}

// WithMember replaces or adds a member of an object.
func WithMember(object, name, value string) string {
	return string(withMember([]byte(object), name, set([]byte(value))))
}

// The bounds that tests reach.
const (
	MaxTerminals = maxTerminals
	MaxTombs     = maxTombs
	MaxCalls     = maxCalls
	TextPause    = textPause
)
