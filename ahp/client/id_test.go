package client_test

import (
	"regexp"
	"testing"

	"tether/ahp/client"
)

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 100 {
		id := client.NewID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("%q is no UUID of version 4, or came twice", id)
		}
		seen[id] = true
	}
}
