package host_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/host"
)

// An owner that resumes knows what it wrote. Were it sent all of that on each connection, it could not go on over links that break
// often: one snapshot is more than they carry.
func TestAnOwnerIsNotSentItsOwnHistory(t *testing.T) {
	for _, resume := range []bool{true, false} {
		t.Run(fmt.Sprintf("resume=%v", resume), func(t *testing.T) {
			h := testHost(t, host.Options{})
			owner := connect(t, h, "laptop", viewOptions{resume: resume})
			owner.create(uri)
			owner.dispatch(uri, commandExecuted(1))
			for i := range 20 {
				owner.output(uri, strings.Repeat("0123456789abcde\n", 1000), int64(i*16000))
			}
			owner.dispatch(uri, commandFinished(1))
			owner.dispatch(uri, commandExecuted(2))
			owner.ping()
			watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
			if err := owner.subscribe(uri); err != nil {
				t.Fatal(err)
			}
			if n := len(watcher.textOf(uri)); n != 320000 {
				t.Errorf("an observer is sent %d bytes, want all", n)
			}
			if n := len(owner.textOf(uri)); resume != (n > 0 && n <= 32<<10) || !resume && n != 320000 {
				t.Errorf("the owner is sent %d bytes of its own", n)
			}
			parts := owner.state(uri).Content
			if n := len(parts); n != 2 || parts[0].CommandID != "1" || !parts[0].IsComplete || parts[1].CommandID != "2" || parts[1].IsComplete {
				t.Errorf("the owner is told of commands %+v, want the finished and the open one", parts)
			}
		})
	}
}
