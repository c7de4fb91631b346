package adopt_test

import (
	"os"
	"testing"
	"time"

	"tether/agent/adopt"
	"tether/internal/testkit"
)

const verb = "adopt-reader"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == verb {
		os.Exit(adopt.Main(os.Args[2:]))
	}
	if code, is := commandOf(os.Args); is {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == countVerb {
		every, err := time.ParseDuration(os.Args[2])
		if err == nil {
			printCount(every)
		}
		os.Exit(1)
	}
	os.Exit(testkit.Main(m))
}
