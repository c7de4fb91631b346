package page

import (
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"tether/host/admission"
	"tether/host/web"
)

// contentPolicy lets the page run only its own scripts and talk only to this host.
// xterm.js makes style sheets while it runs, which is why styles may be inline.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; worker-src 'self'; manifest-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// PageHeaders sets headers that keep other pages from using this answer, and this answer
// from loading anything from elsewhere.
func PageHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin") // with none, forms would be sent without an origin
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

// headers are PageHeaders of pages that lead to previews: they bring codes by a form,
// which names its origin.
func (pg *Page) headers(header http.Header) {
	PageHeaders(header)
	if pg.previews != nil {
		header.Set("Content-Security-Policy", strings.Replace(contentPolicy, "form-action 'self'", "form-action 'self' "+pg.previews.Source(), 1))
		header.Set("Referrer-Policy", "strict-origin")
	}
}

// asset serves a file of the page.
func asset(w http.ResponseWriter, name string) *admission.Refusal {
	file, err := web.Files().Open(path.Clean(name))
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // independent of the system's table
	case ".mjs", ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".png":
		kind = "image/png"
	case ".webmanifest":
		kind = "application/manifest+json"
	case ".html":
		kind = "text/html; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	}
	if err == nil {
		defer file.Close()
	}
	if err != nil || kind == "" {
		return errNoFile
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.Copy(w, file) // in pieces, because a slow reader needs no token; fails only with the connection
	return nil
}

// file serves a file of the page to everybody.
func file(name string) admission.Handler {
	return func(w http.ResponseWriter, _ *http.Request) *admission.Refusal { return asset(w, name) }
}
