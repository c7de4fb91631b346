package declared

import "encoding/json"

// Reparse reads a file's contents and returns them as they would be written.
func Reparse(data []byte) ([]byte, error) {
	s, err := parseStore(data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}
