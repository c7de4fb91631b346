package events

import (
	"errors"
	"fmt"
	"os"

	"tether/internal/jsonspan"
	"tether/platform/secret"
)

// CursorFile is the path of a file that stores the cursors of one command line's
// subscriptions; "" stores none.
type CursorFile string

// Recall sets the cursors of those requests for which the file has one.
func (f CursorFile) Recall(subs []Request) error {
	if f == "" {
		return nil
	}
	data, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var cursors map[string]string
	if err == nil {
		err = jsonspan.Unmarshal(data, &cursors)
	}
	if err != nil {
		return fmt.Errorf("--cursor-file: %w; remove the file to start again", err)
	}
	for i := range subs {
		if text, ok := cursors[subs[i].key()]; ok {
			subs[i].Cursor = &text
		}
	}
	return nil
}

// Remember writes the cursors of the requests. It replaces the file atomically; only the
// user can read it.
func (f CursorFile) Remember(subs []Request) error {
	if f == "" {
		return nil
	}
	cursors := map[string]string{}
	for i := range subs {
		if c := subs[i].Cursor; c != nil {
			cursors[subs[i].key()] = *c
		}
	}
	return secret.WriteJSON(string(f), cursors)
}

// key returns the key of a request's cursor in the file.
func (r *Request) key() string { return r.Name + " " + string(r.Arguments) }
