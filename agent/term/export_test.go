package term

import "encoding/json"

// RecordedPorts reads ports of a loan in a record.
func RecordedPorts(raw string) []LentPort {
	var all []recordedPort
	if json.Unmarshal([]byte(raw), &all) != nil {
		return nil
	}
	return portsFrom(all)
}
