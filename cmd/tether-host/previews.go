package main

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"tether/host"
	"tether/host/access"
	"tether/host/preview"
	"tether/internal/loopback"
)

// checkPreviews refuses a domain for previews that cannot be beside the page's name. It
// is called after checkPublicURL.
func (s *settings) checkPreviews() error {
	if s.previewDomain == "" {
		return nil
	}
	wrong := func(why, hint string) error {
		return &usageError{fmt.Sprintf("--preview-domain %.200q: %s", s.previewDomain, why), hint}
	}
	const other = "give a name with a wildcard certificate beside the page's, best below another registered domain: --preview-domain preview.example"
	if s.publicURL == "" {
		if loopback, err := isLoopback(s.listen); err == nil && loopback {
			return wrong("on loopback, previews are at names below localhost", "omit --preview-domain, or give --public-url too")
		}
		return wrong("the page's name is not known, which must be another one", "add --public-url https://NAME")
	}
	page, err := url.Parse(s.publicURL)
	if err != nil {
		return err
	}
	if err := preview.CheckDomain(s.previewDomain, page); err != nil {
		return wrong(err.Error(), other)
	}
	if loopback.Is(page.Hostname()) {
		s.previewDomain = "" // localhost: the same as without the flag
		return nil
	}
	name, _, _ := strings.Cut(strings.ToLower(s.previewDomain), ":")
	for _, origin := range s.origins {
		u := url.URL{Host: origin}
		if at := strings.ToLower(u.Hostname()); at == name || strings.HasSuffix(at, "."+name) {
			return &usageError{fmt.Sprintf("--allow-origin %.200q would let previews use the host with their visitors' logins", origin), "omit it"}
		}
	}
	return nil
}

// openPreviews sets where lent ports are shown in browsers: below the domain that was
// given, or below localhost if the page at that URL is on this machine.
func (s *settings) openPreviews(o *host.Options, page string) error {
	u, err := url.Parse(page)
	if err != nil {
		return err
	}
	onLoopback, err := isLoopback(s.listen)
	domain := s.previewDomain
	switch {
	case err != nil:
		return err
	case domain != "":
	case loopback.Is(u.Hostname()) && (onLoopback || s.publicURL != ""):
		domain = preview.Localhost
	default:
		o.NoPreviews = "it has no wildcard name for them, see tether-host --preview-domain; another port of the page's name would share its cookies"
		return nil
	}
	if port := u.Port(); !strings.Contains(domain, ":") && port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		domain += ":" + port
	}
	o.Previews = preview.Options{Domain: domain, Secure: u.Scheme == "https"}
	path, err := tokensPath(s.tokens)
	if err != nil || s.withoutToken { // no place for a key: previews have other names after a restart
		_, _ = rand.Read(o.Previews.Key[:]) // never fails
		return nil
	}
	secret, err := hostKey(keyPath(path))
	if err != nil {
		return err
	}
	key, err := hkdf.Key(sha256.New, secret.Seed(), nil, "tether-host previews", len(o.Previews.Key))
	copy(o.Previews.Key[:], key)
	if s.node != nil {
		o.Previews.Used = access.OpenCodes(s.node.Place("previews"))
	}
	return err
}
