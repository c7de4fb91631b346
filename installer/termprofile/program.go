package termprofile

import (
	"bytes"
	"errors"
	"os"
	"slices"
)

// Program is a terminal program.
type Program struct {
	ID, Name string
	Places   []Place
	// Sole says that the program has no profiles: the edit changes the shell of all new
	// windows. Otherwise a profile is offered beside the usual shell.
	Sole bool
	// Hand is what to write where the edits cannot be made, and where.
	Hand string
	// DefaultByHand says how to make the profile the default, where no file does that.
	DefaultByHand string

	commands []string // names of its programs; if one is in the PATH, it is installed
	seen     []string // paths; if one exists, it is installed
}

// Place is a file, or another place with text, and what to change there.
type Place struct {
	Path  string
	Dconf bool // Path is a directory of dconf, whose text is what dconf dump prints
	Mode  os.FileMode

	edits []edit
	main  []edit // those that make the profile the default
	fault error  // why no edit can be made
}

// edit is a change that can be undone.
type edit interface {
	// add returns the changed text, or the same if the change is there. An empty text is
	// a new file.
	add(text []byte) ([]byte, error)
	// remove returns the text without the change, or the same if the change is not there.
	remove(text []byte) ([]byte, error)
}

// errTaken is returned by add if the person has set something else there.
var errTaken = errors.New("something else is set there, and stays")

// Added returns the text of the place with the edits, and with those that make the
// profile the default if def is set. The error says why an edit cannot be made.
func (p Place) Added(text []byte, def bool) ([]byte, error) {
	if p.fault != nil {
		return nil, p.fault
	}
	edits := p.edits
	if def {
		edits = slices.Concat(p.edits, p.main)
	}
	for _, e := range edits {
		var err error
		if text, err = e.add(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Removed returns the text of the place without all edits, or nil if nothing else is
// left.
func (p Place) Removed(text []byte) ([]byte, error) {
	before := text
	for _, e := range slices.Backward(slices.Concat(p.edits, p.main)) {
		var err error
		if text, err = e.remove(text); err != nil {
			return nil, err
		}
	}
	if len(before) > 0 && !bytes.Equal(before, text) && isEmpty(text) {
		return nil, nil
	}
	return text, nil
}

// Installed reports whether the program is on this machine. find looks for a program in
// the PATH.
func (p *Program) Installed(find func(name string) (string, error)) bool {
	if slices.ContainsFunc(p.commands, func(name string) bool { _, err := find(name); return err == nil }) {
		return true
	}
	return slices.ContainsFunc(p.seen, exists)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// first returns the first path that exists, or the first.
func first(paths ...string) string {
	if i := slices.IndexFunc(paths, exists); i >= 0 {
		return paths[i]
	}
	return paths[0]
}
