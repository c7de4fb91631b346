package installer

import (
	"encoding/json"
	"strings"
)

// recordMark begins the line of an installed file that holds its record.
const recordMark = "tether service: "

// record is s on one line, for a comment. JSON in Go has no line ends, < or >.
func (s *Service) record() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers
	}
	return recordMark + string(text)
}

// recorded finds the service that an installed file was rendered from. ok is
// false for a file that is not ours.
func recorded(text string) (s Service, ok bool) {
	_, rest, found := strings.Cut(text, recordMark)
	if !found || !strings.Contains(text, madeBy) {
		return s, false
	}
	return s, json.NewDecoder(strings.NewReader(rest)).Decode(&s) == nil
}

// environment lists the daemon's variables besides the system's own.
func (s *Service) environment() []string {
	if s.Home == "" {
		return s.Env
	}
	return append([]string{"TETHER_HOME=" + s.Home}, s.Env...)
}
