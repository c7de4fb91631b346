package preview

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Localhost is the domain of previews at a host on this machine alone: browsers know by
// themselves where names below it lead.
const Localhost = "localhost"

// domain is a parsed Options.Domain.
type domain struct {
	name string // lower case
	port string // "" for the scheme's own
}

func (d domain) text() string {
	if d.port == "" {
		return d.name
	}
	return d.name + ":" + d.port
}

func parseDomain(text string) (d domain, err error) {
	d.name = text
	if strings.Contains(text, ":") {
		if d.name, d.port, err = net.SplitHostPort(text); err != nil {
			return d, fmt.Errorf("%.200q is not a name with a port", text)
		}
		if n, err := strconv.ParseUint(d.port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != d.port {
			return d, fmt.Errorf("%.200q has no port that exists", text)
		}
	}
	d.name = strings.ToLower(d.name)
	if _, err := netip.ParseAddr(d.name); err == nil {
		return d, fmt.Errorf("%.200q is an address, which has no names below it", text)
	}
	if len(d.name) > 253-1-maxLabel {
		return d, fmt.Errorf("%.200q is too long", text)
	}
	for part := range strings.SplitSeq(d.name, ".") {
		if !isHostPart(part) {
			return d, fmt.Errorf("%.200q is not a name of the DNS: write it without *, a scheme, a path or a dot at its end", text)
		}
	}
	return d, nil
}

// isHostPart reports whether a text is one part of a host's name, in lower case.
func isHostPart(part string) bool {
	for _, c := range []byte(part) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return part != "" && len(part) <= maxLabel && part[0] != '-' && part[len(part)-1] != '-'
}

// CheckDomain returns an error if a domain cannot have previews beside the page at a URL:
// it is nonsense, or one of the two names is below the other or the same. Cookies that
// are set for the upper name would reach the lower one. Only localhost is the same:
// browsers let no page below it set cookies for it.
func CheckDomain(text string, page *url.URL) error {
	d, err := parseDomain(text)
	if err != nil {
		return err
	}
	name := strings.TrimRight(strings.ToLower(page.Hostname()), ".")
	local := name == Localhost || isAddress(name)
	switch {
	case d.name == Localhost && local:
		return nil
	case d.name == Localhost || strings.HasSuffix(d.name, "."+Localhost):
		return fmt.Errorf("%s leads to each visitor's own machine", d.name)
	case !strings.Contains(d.name, "."):
		return fmt.Errorf("%s has no name above it, so that no certificate is for the names below it", d.name)
	case page.Scheme != "https":
		return fmt.Errorf("previews at %s need https, and the page is %s", d.name, page)
	case d.name == name:
		return fmt.Errorf("%s is the page's own name: the cookies of previews would reach the page", d.name)
	case strings.HasSuffix(name, "."+d.name):
		return fmt.Errorf("%s is above the page's name %s: previews could set cookies that reach the page", d.name, name)
	case strings.HasSuffix(d.name, "."+name):
		return fmt.Errorf("%s is below the page's name %s: cookies that are set for the page's name would reach previews, and previews could set some for it", d.name, name)
	}
	return nil
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// hostname returns the name in a Host header, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(host)
}

const (
	maxLabel   = 63 // RFC 1035
	randomSize = 16 // bytes of a label that look random
)

var labelCode = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Label returns the name of one lending of a port. What identifies the lending must
// differ from that of every other one, so that no name is used again.
func (p *Previews) Label(port int, lending ...string) string {
	return strconv.Itoa(port) + "-" + labelCode.EncodeToString(p.sign("label", append(lending, strconv.Itoa(port))...)[:randomSize])
}

// PortOf returns the port in a label, 0 if it is none.
func PortOf(label string) int {
	if !isLabel(label) {
		return 0
	}
	text, _, _ := strings.Cut(label, "-")
	n, _ := strconv.Atoi(text)
	return n
}

// isLabel reports whether a text may have been made by Label.
func isLabel(text string) bool {
	port, random, ok := strings.Cut(text, "-")
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil || n == 0 || strconv.FormatUint(n, 10) != port || len(random) != labelCode.EncodedLen(randomSize) {
		return false
	}
	for _, c := range []byte(random) {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// URL returns the beginning of a preview's URLs, without a slash: its origin.
func (p *Previews) URL(label string) string { return p.scheme + "://" + label + p.suffix }

// sign returns the MAC of texts for one purpose. None can be mistaken for others.
func (p *Previews) sign(purpose string, texts ...string) []byte {
	mac := hmac.New(sha256.New, p.opts.Key[:])
	for _, text := range append([]string{purpose}, texts...) {
		fmt.Fprintf(mac, "%d:%s,", len(text), text)
	}
	return mac.Sum(nil)
}
