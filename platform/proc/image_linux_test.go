package proc

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

func TestForgetImage(t *testing.T) {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	resident := func() (kib int64) {
		all, err := mappings(name)
		if err != nil {
			t.Skip(err)
		}
		for _, m := range all {
			kib += m.resident
		}
		return kib
	}
	before := resident()
	if before == 0 {
		t.Skip("this system does not tell what is mapped")
	}
	less := false
	for n := 0; n < 1000 && !less; n++ { // others may run meanwhile
		must.Do(t, ForgetImage())
		less = resident() < before
	}
	if !less {
		t.Errorf("%d KiB are mapped, as before", before)
	}
	if !regexp.MustCompile(`^a+b$`).MatchString(strings.Repeat("a", 100) + "b") { // it all works as before
		t.Error("no match")
	}
}

func TestMappings(t *testing.T) {
	m, err := parseMapping(strings.Fields("00400000-00b26000 r-xp 00000000 fe:00 10110419    /opt/x"))
	if want := (mapping{start: 0x400000, end: 0xb26000}); err != nil || m != want {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
	if m, err := parseMapping(strings.Fields("1-2 rw-p 0 0 0 /x")); err != nil || !m.writable {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"x-2 r--p 0 0 0", "1 r--p 0 0 0"} {
		if m, err := parseMapping(strings.Fields(bad)); err == nil {
			t.Errorf("%q is %+v", bad, m)
		}
	}
}
