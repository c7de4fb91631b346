package devserver

// Looks is looks.
type Looks = looks

// Find is find.
func (l *Looks) Find(at func() ([]string, error)) ([]string, error) { return l.find(at) }
