package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"tether/platform/secret"
)

// CursorFile is the path of a file with the cursors of the subscriptions of one command line; "" keeps none.
type CursorFile string

// Recall sets the cursors of requests that the file has.
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
		err = json.Unmarshal(data, &cursors)
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

// Remember writes the cursors that requests have. The file is whole at any time, and the user's alone.
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
	data, err := json.Marshal(cursors)
	if err == nil {
		err = secret.WriteFile(string(f), append(data, '\n'))
	}
	return err
}

// key is the key under which a request's cursor is kept.
func (r *Request) key() string { return r.Name + " " + string(r.Arguments) }
