package declared

import "encoding/json"

// Reparse reads what a file has and returns how it would be written.
func Reparse(data []byte) ([]byte, error) {
	s, err := parseStore(data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}
