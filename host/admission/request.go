package admission

import (
	"net/http"
	"net/netip"
	"strings"
)

// RequestToken returns the token of a request. A token that is given twice counts as
// none, because somebody may have tampered with the URL.
func RequestToken(r *http.Request) (token string, ok bool) {
	if values := r.URL.Query()["tkn"]; len(values) > 0 {
		return values[0], len(values) == 1 && values[0] != ""
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// FromOtherPage reports whether a browser says that another page made it send the
// request, without an Origin, which was checked before. Requests for images, frames and
// links of any page are such. Their secrets are not checked: otherwise a page could use
// up the wrong tokens that its visitor's address may send.
func FromOtherPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin": // no browser, the person, or this host's own page
		return false
	}
	return r.Header.Get("Origin") == ""
}

// FromProgram reports whether no browser has sent the request: browsers name its origin.
// A program was given its secret, so it may use any name for this host.
func FromProgram(r *http.Request) bool {
	return r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Cookie") == ""
}

// Followed reports whether a person has followed a link in a window, as opposed to a page
// that shows this one in a frame.
func Followed(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && (dest == "" || dest == "document")
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}
