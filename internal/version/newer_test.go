package version

import (
	"strings"
	"testing"
)

func TestNewer(t *testing.T) {
	order := []string{"0.1.0-alpha", "0.1.0-alpha2", "0.1.0-beta1", "0.1.0-pre9+gabc", "0.1.0-pre10+gdef", "0.1.0-rc1", "0.1.0", "0.1.1-pre1", "0.2.0", "0.10.0", "1.0.0"}
	for i, a := range order {
		for j, b := range order {
			if newer, known := Newer(a, b); !known || newer != (i > j) {
				t.Errorf("%s newer than %s: %v, %v", a, b, newer, known)
			}
		}
	}
	if newer, known := Newer("0.1.0-pre9+gabc", "0.1.0-pre9+gdef"); newer || !known {
		t.Error("another commit with the same number is newer")
	}
	for _, bad := range []string{"", "0.1.0-dev.1", "v0.0.0-20260101000000-abcdef", "1.2", "99999999999999999999.1.1"} {
		if _, known := Newer(bad, "0.1.0"); known {
			t.Errorf("%q was taken as a release", bad)
		}
	}
}

func TestListed(t *testing.T) {
	sum := strings.Repeat("a", 64)
	if got, err := Listed(sum + "  tether_0.2.0_linux_amd64.tar.gz\n" + sum + "  tether_0.2.0.cdx.json\n"); got != "0.2.0" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "<html>", sum + "  tether_\x1b[31m.cdx.json\n", sum + "  tether_nonsense.cdx.json\n"} {
		if got, err := Listed(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
