package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ReadJSON is ReadFile for files that tether's own programs write: a JSON object whose
// member "version" must equal version. It decodes the object into into, a pointer to a
// struct. A member without a field in the struct is an error, too: a newer program has
// written it, and writing the file again would lose it silently. Errors name the file,
// the member, and the remedy.
func ReadJSON(path string, version int, into any) error {
	data, err := ReadFile(path)
	if err != nil {
		return err
	}
	return DecodeJSON(data, path, version, into)
}

// DecodeJSON is ReadJSON for data that was already read from path.
func DecodeJSON(data []byte, path string, version int, into any) (err error) {
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return damaged(path, err)
	}
	if head.Version != version {
		return fmt.Errorf("%s has version %d, but this program supports only version %d; use the release that wrote the file", path, head.Version, version)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if err == nil {
		return nil
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%s has the unknown field %s, written by a newer release; use that release, or remove the field from the file and lose its setting",
			path, name)
	}
	return damaged(path, err)
}

// WriteJSON is WriteFile of v as indented JSON.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'))
}

// DamagedError is returned by ReadJSON for a file that is not JSON, or whose values have
// other types than this program writes.
type DamagedError struct {
	Path string
	Err  error // the JSON decoder's error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: %v; repair the file, or delete it to start over", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

func damaged(path string, err error) error { return &DamagedError{path, err} }
