package deliver_test

import (
	"net/netip"
	"strings"
	"testing"

	"tether/internal/deliver"
)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com":                       "https://example.com/",
		"https://EXAMPLE.com:443/Hook?a=B&c":        "https://example.com/Hook?a=B&c",
		"https://example.com:8443/x":                "https://example.com:8443/x",
		"https://93.184.216.34/":                    "https://93.184.216.34/",
		"https://[2606:2800:220:1::1]/":             "https://[2606:2800:220:1::1]/",
		"http://example.com/":                       "",
		"https://user@example.com/":                 "",
		"https://user:pass@example.com/":            "",
		"https://example.com/#x":                    "",
		"https://example.com/#":                     "",
		`https://example.com\@evil.example.com/`:    "",
		"https://exa mple.com/":                     "",
		"https://example.com/\r\nX: y":              "",
		"https://exämple.com/":                      "",
		"https:///x":                                "",
		"https:example.com":                         "",
		"//example.com":                             "",
		"ftp://example.com/":                        "",
		"https://example.com:0/":                    "",
		"https://example.com:99999/":                "",
		"https://127.0.0.1/":                        "",
		"https://127.1/":                            "",
		"https://0x7f.1/":                           "",
		"https://2130706433/":                       "",
		"https://017700000001/":                     "",
		"https://example.0x7f/":                     "",
		"https://10.0.0.1/":                         "",
		"https://169.254.169.254/latest/meta-data/": "",
		"https://[::1]/":                            "",
		"https://[::ffff:127.0.0.1]/":               "",
		"https://[fe80::1%25eth0]/":                 "",
		"https://[64:ff9b::7f00:1]/":                "",
		"https://" + strings.Repeat("x", 2048):      "",
		"":                                          "",
	} {
		if got, err := (deliver.Guard{}).Check(url); got != want || (err == nil) != (want != "") {
			t.Errorf("%q becomes %q, %v", url, got, err)
		}
	}
	for url, ok := range map[string]bool{"http://127.0.0.1:9/": true, "https://127.0.0.1:9/": true, "http://example.com/": false, "http://10.0.0.1/": false, "http://localhost/": false} {
		if _, err := (deliver.Guard{Allow: []netip.Prefix{loopback}}).Check(url); (err == nil) != ok {
			t.Errorf("%s with loopback allowed: %v", url, err)
		}
	}
}

// The person's own receivers may be anywhere; clear text stays on this machine.
func TestAnyURL(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://10.0.0.1/": true, "https://nas.local/x": true, "https://127.0.0.1:9/": true, "https://localhost/": true, "http://127.0.0.1:9/": true, "http://[::1]:9/": true,
		"http://localhost:9/": true, "http://LOCALHOST:9/": true, "http://10.0.0.1/": false, "http://example.com/": false, "http://localhost.example.com/": false,
		"http://127.1/": false, "https://me@example.com/": false, "ftp://127.0.0.1/": false,
	} {
		if got, err := (deliver.Guard{Any: true}).Check(url); (err == nil) != ok {
			t.Errorf("%s becomes %q, %v", url, got, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for ip, ok := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700::1111": true, "100.63.255.255": true, "172.32.0.1": true, "223.255.255.255": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false, "127.255.255.255": false, "169.254.169.254": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.0.0.1": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false, "198.18.0.1": false, "198.51.100.1": false,
		"203.0.113.1": false, "224.0.0.1": false, "255.255.255.255": false, "::": false, "::1": false, "::ffff:10.0.0.1": false, "::ffff:1.1.1.1": true, "64:ff9b::a00:1": false,
		"fe80::1": false, "fc00::1": false, "fd12::1": false, "ff02::1": false, "2001:db8::1": false, "2001::1": false, "2002:a00:1::": false, "3fff::1": false, "100::1": false,
	} {
		if (deliver.Guard{}).Allowed(netip.MustParseAddr(ip)) != ok {
			t.Errorf("%s is allowed: %t", ip, !ok)
		}
	}
	allowed := deliver.Guard{Allow: []netip.Prefix{loopback}}
	if !allowed.Allowed(netip.MustParseAddr("127.0.0.1")) || allowed.Allowed(netip.MustParseAddr("10.0.0.1")) {
		t.Error("what the operator allows is not what is allowed")
	}
}

func FuzzURL(f *testing.F) {
	f.Add("https://example.com/")
	f.Add("https://[::ffff:127.0.0.1]:8080/x?y#z")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := deliver.Guard{}.Check(text)
		if err != nil {
			return
		}
		if again, err := (deliver.Guard{}).Check(got); err != nil || again != got {
			t.Errorf("%q becomes %q, and that %q, %v", text, got, again, err)
		}
		if !strings.HasPrefix(got, "https://") {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
