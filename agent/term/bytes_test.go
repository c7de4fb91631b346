package term_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/redact"
	"tether/agent/term"
)

// A secret that is not UTF-8 is masked, also by the next daemon, which has it from the
// holder.
func TestSecretsThatAreNotUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "Zk3!vault\xe9-9fQx+77"
		o := redacted(t, redact.Options{})
		v := newVault(1 << 20)
		spec := term.Spec{Env: []string{"HOME=/", "MY_TOKEN=" + secret}}
		pool, h, l := keeping(t, v, o, spec)
		for generation := range 2 {
			at := int64(len(outwardText(t, h, 0)))
			v.print("it is " + secret + " here\r\n")
			synctest.Wait()
			got := outwardText(t, h, at)
			if strings.Contains(got, "9fQx") || strings.Contains(got, "Zk3!") || !strings.Contains(got, "it is ") || !strings.Contains(got, " here") {
				t.Errorf("generation %d shows %q", generation, got)
			}
			l.leave(pool)
			pool, h, l = adopting(t, v, o)
		}
		l.leave(pool)
	})
}
