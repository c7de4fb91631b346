package hosts

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A link that comes and goes all the time is written down once a minute, and how often
// that was.
func TestALinkThatFlapsFillsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		came := (&links{up: func(name string, more int) { told = append(told, fmt.Sprintf("%s and %d", name, more)) }}).cameUp("h")
		for range 150 {
			came()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		came()
		if d := cmp.Diff([]string{"h and 0", "h and 59", "h and 59", "h and 29"}, told); d != "" {
			t.Errorf("-want +told:\n%s", d)
		}
	})
}
